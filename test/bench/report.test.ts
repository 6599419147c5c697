import { hostname } from 'node:os'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  aheadOf,
  type Metric,
  type Sample,
  type Series,
  summarize,
} from '../../bench/measure/row.ts'
import { compare } from '../../bench/report/baseline.ts'
import { markdownOf } from '../../bench/report/markdown.ts'
import { pairedLines } from '../../bench/report/paired.ts'
import { pictureOf } from '../../bench/report/picture.ts'
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

const movesBetween = (before: Results, after: Results) =>
  compare(before, after).moves.map(({ metric, word, to }) => [metric.key, word, to])

void t.test(
  'a figure has moved where the medians are further apart than both spreads',
  async (t) => {
    const before = resultsOf(hubOf({ rate: [100, 101, 102], kept: [10, 50, 90] }))
    const after = (rate: number[], kept: number[]) => resultsOf(hubOf({ rate, kept }))
    t.strictSame(movesBetween(before, after([80, 81, 82], [50, 60, 120])), [
      ['rate', 'worse', undefined],
    ])
    t.strictSame(movesBetween(before, after([130, 131, 132], [1040, 1060, 1080])), [
      ['rate', 'better', undefined],
      ['kept', 'worse', undefined],
    ])
    t.strictSame(movesBetween(before, after([80, 99, 140], [10, 50, 90])), [], 'a spread is noise')
    t.strictSame(movesBetween(before, after([96, 96, 96], [10, 50, 90])), [], 'less than a tenth')
  },
)

void t.test('two builds differ where all rounds of a figure are on one side', async (t) => {
  const rows = [
    summarize({ name: 'list-json', title: '', metrics }, [
      {
        peer: 'against',
        samples: samplesOf({ cpu: [10, 20, 10], rate: [5, 5, 5], kept: [1, 2, 1] }),
      },
      hubOf({ cpu: [12, 24, 11], rate: [6, 7, 8], kept: [2, 1, 2] }),
    ]),
  ]
  t.match(pairedLines(rows), [
    'worse: list-json, cpu ms: 1.200 of the other build’s (1.100 to 1.200)',
    'better: list-json, requests/s: 1.400 of the other build’s (1.200 to 1.600)',
    '2 of 3 figures differ in all 3 rounds; by chance up to 1 would',
  ])
})

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

void t.test(
  'the summary has peers, target and verdict; ahead is ahead in each round',
  async (t) => {
    const cpu: Metric = {
      key: 'cpu',
      title: 'cpu s/1,000',
      digits: 2,
      aims: [{ most: 2, to: 'http-proxy' }, aheadOf('yurthub')],
    }
    const lineWith = (yurthub: readonly number[]) => {
      const rows = [
        summarize({ name: 'get-passed', title: '', metrics: [cpu] }, [
          { peer: 'http-proxy', samples: samplesOf({ cpu: [1, 1, 1] }) },
          { peer: 'yurthub', samples: samplesOf({ cpu: yurthub }) },
          hubOf({ cpu: [1, 2, 1] }),
        ]),
      ]
      const page = markdownOf({ ...resultsOf(), rows }, notes)
      return page.split('\n').find((each) => each.startsWith('| GET passed on: CPU'))
    }
    const start = '| GET passed on: CPU, s per 1,000 | 1.00 |'
    const targets = '2 x http-proxy; ahead of yurthub'
    t.equal(lineWith([3, 3, 3]), `${start} 3.00 | 1.00 |  |  | ${targets} | yes; yes |`)
    t.equal(lineWith([3, 2, 3]), `${start} 3.00 | 1.00 |  |  | ${targets} | yes; **no** |`)
  },
)

void t.test('each line of the summary is a figure of a row', async (t) => {
  for (const [words, row, key] of summary)
    t.ok(
      scenarios
        .find(({ name }) => name === row)
        ?.metrics.some((metric) => metric.key === key && metric.aims?.length),
      `${words}, with a target`,
    )
})

void t.test(
  'the picture is well-formed, for light and dark, with title, axes and legend',
  async (t) => {
    const picture = pictureOf(
      resultsOf(
        { peer: 'haproxy-http', samples: samplesOf({ cpu: [1, 2, 1] }) },
        hubOf({ cpu: [3, 5, 3], kept: [-10, 0, 30], 'cpu@10': [1, 1, 1], 'cpu@100': [90, 90, 90] }),
      ),
    )
    t.match(picture, '@media (prefers-color-scheme:dark)')
    t.match(picture, 'What the hub costs, as a multiple of what is aimed for')
    t.match(picture, 'multiple of the aim: 1 and less is reached')
    t.match(picture, 'list-json, cpu ms: 2 x haproxy-http')
    t.match(picture, 'hub: slope 1.95')
    for (const peer of ['haproxy-http', 'hub']) t.match(picture, `>${peer}</text>`)
    t.notMatch(picture, /NaN|Infinity|undefined/)
    const open = [...picture.matchAll(/<(\w+)(?:\s[^>]*[^/])?>/g)].map(([, name]) => name)
    const closed = [...picture.matchAll(/<\/(\w+)>/g)].map(([, name]) => name)
    t.strictSame(new Set(open), new Set(closed))
    t.equal(open.length, closed.length, 'each element ends')
  },
)

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
