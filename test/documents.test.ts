import t from 'tap'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { runCli } from '../src/cli/cli.ts'
import { clusterMetricTable } from '../src/metrics/cluster-table.ts'
import { metricTable } from '../src/metrics/table.ts'
import { documentedCommands, namedCommands } from './documented-commands.ts'
import { moved } from './metrics/movers.ts'
import { isThere, testsIn } from './named-tests.ts'
import { listIn, lists, rowsUnder, tables } from './tables.ts'

const read = (path: string) => readFileSync(path, 'utf8')

for (const { file, heading, rows } of tables) {
  void t.test(`${file}, ${heading}: a row for each there is, and no other`, async (t) => {
    t.strictSame(rowsUnder(read(file), heading), rows(), 'node test/write-tables.ts mends it')
  })
}

for (const { file, name, lines } of lists) {
  void t.test(`${file}, ${name}: an item for each there is, and no other`, async (t) => {
    t.equal(listIn(read(file), name), lines().join('\n'), 'node test/write-tables.ts mends it')
  })
}

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (page: string): ReadonlySet<string> =>
  new Set(
    [
      ...read(page)
        .replaceAll(/^```[\s\S]*?^```/gm, '')
        .matchAll(/^#+ (.*)$/gm),
    ].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

const documents = globSync(['*.md', 'docs/**/*.md', 'changelog/*.md', 'filters/*.md', 'bench/*.md'])

void t.test('links of documents lead to existing pages and headings', async (t) => {
  t.ok(documents.length >= 4)
  for (const document of documents) {
    const links = read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)
    for (const [link, path = '', anchor] of links) {
      const page = path === '' ? document : join(dirname(document), path)
      t.ok(existsSync(page), `${document}: ${link}`)
      if (anchor !== undefined) t.ok(anchorsOf(page).has(anchor), `${document}: ${link}`)
    }
  }
})

void t.test('a link that names a page leads to that page', async (t) => {
  let named = 0
  for (const document of documents) {
    for (const [link, name = '', path = ''] of read(document).matchAll(
      /\[([^\]]*\.md)\]\(([^)#]*)/g,
    )) {
      named++
      t.equal(basename(name), basename(path), `${document}: ${link}`)
    }
  }
  t.ok(named > 50)
})

/** Of example.com, which is nobody's (RFC 2606), or of others. */
const existing =
  /^(?:(?:\w+\.)*example\.com|kubernetes\.io|www\.w3\.org|json-schema\.org|github\.com\/(?:kubernetes|nodejs|openyurtio))$/

void t.test('pages, packages and the chart name no address that does not exist', async (t) => {
  const files = [...documents, 'package.json', ...globSync('packaging/**/*.{ts,json,yaml,tpl,txt}')]
  const named = files.flatMap((file) => {
    const text = read(file)
    const addresses = text.matchAll(
      /https?:\/\/((?:github\.com\/)?[\w.-]*[a-z])(?=[/:\s"'`)>]|$)/gm,
    )
    const images = text.matchAll(/([\w-]+(?:\.[\w-]+)+)\/nodehub[:@\s]/g)
    return [...addresses, ...images].map(([, host = '']) => ({ file, host }))
  })
  t.ok(named.length > 40)
  const isAddress = ({ host }: { host: string }): boolean => host.includes('.')
  for (const { file, host } of named.filter(isAddress)) t.match(host, existing, `${file}: ${host}`)
})

void t.test('the pages about the code name existing files only', async (t) => {
  const files = globSync('src/**/*.ts').map((path) => basename(path))
  for (const page of ['ARCHITECTURE.md', 'docs/design/data-path.md', 'docs/design/decisions.md']) {
    const text = read(page)
    const folders = new Map(
      [...text.matchAll(/`([A-Z])` is `(src\/[^`]*)`/g)].map(([, letter, folder]) => [
        letter,
        folder,
      ]),
    )
    const paths = [...text.matchAll(/`((?:[A-Z]|src|test|bench|filters|docs)\/[^`\s*]*)`/g)].map(
      ([, path = '']) => path.replace(/^[A-Z](?=\/)/, (letter) => folders.get(letter) ?? letter),
    )
    t.ok(paths.length > 3, page)
    for (const path of paths) t.ok(existsSync(path), `${page}: ${path}`)
    for (const [, name = ''] of text.matchAll(/`([a-z][a-z\d-]*\.ts)`/g))
      t.ok(files.includes(name), `${page}: ${name}`)
  }
})

/** What an engineer reads in ten minutes. */
const mostWords = 1_000

void t.test('the pages about the way of a request are short', async (t) => {
  for (const page of ['ARCHITECTURE.md', 'docs/design/data-path.md']) {
    const words = read(page)
      .split(/\s+/)
      .filter((word) => /\p{L}/u.test(word))
    t.ok(words.length <= mostWords, `${page} has ${words.length} words, of at most ${mostWords}`)
  }
})

void t.test('every command that a page or a message names is there, with its flags', async (t) => {
  const helps = new Map<string, string>()
  const helpOf = async (words: readonly string[]): Promise<string> => {
    let help = helps.get(words.join()) ?? ''
    const add = (text: string): void => void (help += text)
    if (help === '')
      t.equal(await runCli([...words, '--help'], { out: add, err: add }), 0, words.join(' '))
    helps.set(words.join(), help)
    return help
  }
  const named = namedCommands()
  t.ok(named.length > 40)
  for (const { page, line } of named) {
    const [, command = '', ...words] = line.split(' ')
    const [report = ''] = words
    const isReport = command === 'inspect' && /^[a-z]/.test(report)
    const help = await helpOf(isReport ? [command, report] : [command])
    for (const word of words.filter((each) => /^[a-z-]/.test(each) && each !== '--help'))
      t.ok(help.includes(word.replace(/=.*/, '')), `${page}: ${line}`)
  }
  // Most are run as well: test/docs/commands.test.ts.
  for (const line of documentedCommands()) {
    const [, command = '', word = ''] = line.split(' ')
    const help =
      command === 'check-config'
        ? await helpOf(['start'])
        : await helpOf(['inspect', 'cluster'].includes(command) ? [command, word] : [command])
    for (const [flag] of line.replace(/ -- .*/, '').matchAll(/(?<= )--?[a-z][a-z-]*/g))
      t.ok(help.includes(flag), line)
  }
})

/** Pages of docs/design name the tests that show what the pages for readers promise. */
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

/**
 * As it stands in a sample, where a histogram has further words. That a test fails where its metric
 * stands still is shown by `test/metrics/still/main.ts`.
 */
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
