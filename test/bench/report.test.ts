import { hostname } from 'node:os'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Metric, type Sample, type Series, summarize } from '../../bench/measure/row.ts'
import { markdownOf } from '../../bench/report/markdown.ts'
import { readResults, type Results } from '../../bench/report/results.ts'
import { summary } from '../../bench/report/summary.ts'
import { writeResults } from '../../bench/report/write.ts'
import { scenarios } from '../../bench/scenarios/index.ts'

const metrics: readonly Metric[] = [
  {
    key: 'cpu',
    title: 'cpu ms',
    digits: 2,
    against: 'haproxy-http',
    aims: [{ most: 2, to: 'haproxy-http' }],
  },
  { key: 'rate', title: 'requests/s', digits: 0, better: 'more' },
  { key: 'kept', title: 'B/GET', digits: 0, aims: [{ most: 100 }, { most: 0.5, to: 'yurthub' }] },
  { key: 'cpu@10', title: 'cpu ms, 10 objects', digits: 2, point: { of: 'cpu ms', size: 10 } },
  { key: 'cpu@100', title: 'cpu ms, 100 objects', digits: 2, point: { of: 'cpu ms', size: 100 } },
]

const samplesOf = (figures: Readonly<Record<string, readonly number[]>>): Sample[] =>
  Array.from(
    { length: Math.max(...Object.values(figures).map(({ length }) => length)) },
    (_, at) => ({
      figures: Object.fromEntries(Object.entries(figures).map(([key, all]) => [key, all[at]])),
      failures: {},
      loadShare: 0.1,
    }),
  )

const hubOf = (figures: Readonly<Record<string, readonly number[]>>): Series => ({
  peer: 'hub',
  samples: samplesOf(figures),
})

const resultsOf = (...series: Series[]): Results => ({
  date: '2026-01-02 03:04',
  commit: '0123456789',
  machine: '2 cores (of a kind), 24 GB, linux 6.18, Node 26.10.0',
  upstream: 'kube-apiserver v1.36.2 and etcd',
  otherWork: [0.01, 0.02],
  runs: 3,
  seconds: 1,
  minutes: 12,
  peers: series.map(({ peer }) => ({ name: peer, description: `what ${peer} is` })),
  missing: [{ name: 'nginx', why: 'no nginx on PATH' }],
  rows: [summarize({ name: 'list-json', title: 'LIST 500 pods', metrics }, series)],
})

const notes = { command: 'npm run bench', moved: [] }

void t.test('the page has figures, ratio, aim and verdict, and missing figures', async (t) => {
  const page = markdownOf(
    resultsOf(
      { peer: 'haproxy-http', samples: samplesOf({ cpu: [1, 2, 1] }) },
      hubOf({ cpu: [3, 5, 3], kept: [10, 20, 30] }),
    ),
    { command: 'npm run bench -- --runs 3', moved: ['worse: this'] },
  )
  const line = (start: string) => page.split('\n').find((each) => each.startsWith(start))
  t.equal(
    line('| list-json | cpu ms |'),
    '| list-json | cpu ms | 1.00 (1.00 to 2.00) | 3.00 (3.00 to 5.00) | 3.00 (2.50 to 3.00) x haproxy-http | 2 x haproxy-http | **no** |',
  )
  t.equal(
    line('| list-json | B/GET |'),
    '| list-json | B/GET |  | 20 (10 to 30) |  | 100; 0.5 x yurthub | yes; not measured |',
  )
  t.match(page, '| nginx | missing: no nginx on PATH |')
  t.match(page, 'Of 3 targets 1 are reached, 1 are not, and 1 were not measured.')
  t.match(page, '| Commit | 0123456789 |')
  t.match(page, '`npm run bench -- --runs 3`')
  t.match(page, '- worse: this')
  t.notMatch(page, 'busy machine')
})

void t.test('each line of the summary is a figure of a row', async (t) => {
  for (const [words, row, key] of summary)
    t.ok(
      scenarios
        .find(({ name }) => name === row)
        ?.metrics.some((metric) => metric.key === key && metric.aims?.length),
      `${words}, with a target`,
    )
})

void t.test('results are read back as a baseline, and have no host name', async (t) => {
  const folder = t.testdir()
  const results = resultsOf(hubOf({ rate: [1, 2, 3] }))
  writeResults(folder, results, notes)
  const file = join(folder, 'results.json')
  t.strictSame(readResults(file), JSON.parse(JSON.stringify(results)))
  for (const name of ['results.json', 'results.md', 'results.svg'])
    t.notOk(readFileSync(join(folder, name), 'utf8').includes(hostname()), name)
  t.throws(
    () => readResults(join(import.meta.dirname, '..', '..', 'package.json')),
    /not the results/,
  )
})
