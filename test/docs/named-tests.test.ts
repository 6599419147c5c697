/**
 * Pages of docs/design name the tests that show what the pages for readers promise. That a test
 * fails where its metric stands still is shown by `test/metrics/still/main.ts`.
 */
import t from 'tap'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { clusterMetricTable } from '../../src/metrics/cluster-table.ts'
import { metricTable } from '../../src/metrics/table.ts'
import { moved } from '../metrics/movers.ts'
import { isThere, testsIn } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

const read = (page: string): string => readFileSync(page, 'utf8')

const filesIn = (text: string): string[] =>
  [...text.matchAll(/`(test\/[^`*]+\.ts)`/g)].map(([, file = '']) => file)

void t.test('every test that a page names exists', async (t) => {
  let named = 0
  for (const page of [...globSync('docs/design/*.md'), 'test/metrics/metrics-tests.md']) {
    const text = read(page)
    for (const file of filesIn(text)) t.ok(existsSync(file), `${page}: ${file}`)
    for (const test of testsIn(text)) {
      named += 1
      t.ok(isThere(test), `${page}: ${test.file}: “${test.title}”`)
    }
  }
  t.ok(named > 500)
})

/** Tables of a page for readers, and whose rows name the tests of their rows, in the same order. */
const evidence: Readonly<Record<string, readonly string[]>> = {
  limits: [
    '## Clients',
    '### Priority levels',
    '## Probes and scrapers',
    '## API servers',
    "## The cluster's side",
    '## The cache',
    '## Tracing',
    '## Filters of your own',
  ],
  offline: ['## Reads', '## Writes'],
  security: ['## What is defended, and how'],
}

for (const [name, headings] of Object.entries(evidence)) {
  void t.test(`docs/${name}.md: each row of its tables names a test`, async (t) => {
    const [page, tests] = [read(`docs/${name}.md`), read(`docs/design/${name}-tests.md`)]
    for (const heading of headings) {
      const rows = rowsUnder(tests, heading.replace('###', '##'))
      t.strictSame(
        rows.map(([what]) => what),
        rowsUnder(page, heading).map(([what]) => what),
      )
      for (const [what = '', by = ''] of rows) t.ok(filesIn(by).length > 0, what)
    }
  })
}

void t.test('every attack among the tests stands beside the threat model', async (t) => {
  const named = new Set(filesIn(read('docs/design/security-tests.md')))
  for (const file of readdirSync('test/attacks').filter((name) => name.endsWith('.test.ts')))
    t.ok(named.has(`test/attacks/${file}`), file)
})

const command = /`npm (?:run )?(?<job>[\w:-]+)(?: -- (?<words>[^`]*))?`/g

void t.test('a test shows each promise, and a command repeats it', async (t) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  for (const heading of ['Durability', 'Order', 'Staleness', 'Failover', 'Memory and processor']) {
    const rows = rowsUnder(read('docs/design/promises.md'), `## ${heading}`)
    t.ok(rows.length > 3)
    for (const [promise = '', shown = '', repeated = ''] of rows) {
      t.ok(testsIn(shown).length > 0, promise)
      const commands = [...repeated.matchAll(command)]
      t.ok(commands.length > 0, `repeated: ${promise}`)
      for (const { groups: { job = '', words = '' } = {} } of commands) {
        t.ok(job in scripts, `npm run ${job}`)
        const files = words.split(' ').filter((word) => word.includes('/'))
        for (const file of files) t.ok(existsSync(file), file)
      }
    }
  }
})

void t.test('each of yurthub’s features has a row with the cells of its state', async (t) => {
  const rows = rowsUnder(read('docs/design/parity.md'), '# What yurthub does, and the hub')
  t.strictSame(
    rows.map(([row]) => row),
    Array.from({ length: 124 }, (_, i) => `Y${i + 1}`),
  )
  for (const [row = '', feature = '', state = '', remark = '', shown = ''] of rows) {
    t.ok(feature, row)
    t.ok(['holds', 'partly', 'otherwise', 'to come', 'not'].includes(state), `${row}: ${state}`)
    if (state !== 'holds') t.ok(remark, `${row} says what differs, or why`)
    if (!['to come', 'not'].includes(state)) t.ok(testsIn(shown).length > 0, `${row} names a test`)
  }
})

/** As it stands in a sample, where a histogram has further words. */
const sampleOf = (metric: string): RegExp => new RegExp(`${metric}(?:_count|_sum)?(?![a-z_])`)

void t.test('each metric has a row, in the order of the tables, and tests read it', async (t) => {
  t.strictSame(
    moved().map(({ metric }) => metric),
    [metricTable, clusterMetricTable].flatMap((table) =>
      Object.values(table).map(({ name }) => name),
    ),
  )
  for (const { metric, tests } of moved()) {
    t.ok(tests.length > 0, `${metric} names a test`)
    for (const { file } of tests) t.match(read(file), sampleOf(metric), `${file} reads ${metric}`)
  }
})
