import t from 'tap'
import type { Observed } from '../../../bench/host-network/observed.ts'
import type { Record } from '../../../bench/host-network/record.ts'
import { sentencesOf, withSentences } from '../../../bench/host-network/sentences.ts'
import type { Change } from '../../../bench/host-network/series.ts'
import { costsOf, modelRows, type Row } from '../../../bench/host-network/table.ts'

const rowOf = (name: string, ...runs: readonly Observed[]): Row => {
  const row = modelRows().find(({ arm, workload }) => `${arm.name}, ${workload.name}` === name)
  if (!row) throw new Error(`there is no row ${name}`)
  return { ...row, runs }
}

const seen = (more: Partial<Observed>): Observed => ({
  counts: { Serving: 1 },
  said: {},
  misrepresented: 0,
  remarks: {},
  settledMs: 0,
  watchedMs: 10_000,
  restarts: 0,
  events: {},
  writes: {},
  changes: [],
  ...more,
})

const breaks: readonly Change[] = [
  { ms: 100, pod: 'a', state: 'Serving' },
  { ms: 2_000, pod: 'a', state: 'Stuck' },
]
const comesBack: readonly Change[] = [...breaks, { ms: 4_500, pod: 'a', state: 'Serving' }]
const short = (shortMs: number) => ({ atMs: 1_500, shortMs, noneMs: shortMs })

void t.test('an outage until the end of the run reads “does not end”', async (t) => {
  const lasting = seen({ changes: breaks, happened: short(8_000) })
  const mended = seen({ changes: comesBack, happened: short(2_500) })
  const cell = (...runs: readonly Observed[]) =>
    costsOf([rowOf('yurthub-1.4, switched-off', ...runs)])[0]?.[10]
  t.equal(cell(lasting), 'does not end')
  t.equal(cell(mended), '2.5')
  t.equal(cell(mended, mended, lasting), '2.5 (2.5 to does not end)')
})

void t.test('an offline reboot without recovery reads “does not end”', async (t) => {
  const run = { changes: comesBack, happened: short(2_500) }
  const cell = (more: Partial<Observed>) =>
    costsOf([rowOf('legacy, offline-reboot', seen({ ...run, ...more }))])[0]?.[9]
  t.equal(cell({}), 'does not end')
  t.equal(cell({ remarks: { 'served without a link': 1 } }), '2.5')
})

const neverServes = seen({
  counts: { Stuck: 1 },
  changes: [{ ms: 100, pod: 'a', state: 'Stuck' }],
  happened: short(0),
})

void t.test('pods of which none serves before have no outage of 0 seconds', async (t) => {
  const cells = (arm: string, name: string, ...runs: readonly Observed[]) =>
    costsOf([rowOf(`${arm}, ${name}`, ...runs)])[0]?.slice(7, 11)
  t.strictSame(cells('plain', 'holder-ends', neverServes), ['none serves', '', '', ''])
  t.strictSame(cells('plain', 'offline-reboot', neverServes), ['', '', 'none serves', ''])
  const unharmed = seen({ changes: breaks.slice(0, 1), happened: short(0) })
  t.strictSame(cells('explicit', 'holder-ends', unharmed), ['0.0', '', '', ''])
})

void t.test('sentences of the page are derived from the record', async (t) => {
  const made = { date: '2030-01-01', kubernetes: 'v1', containerd: '2', machine: 'two cores' }
  const rows = [
    rowOf('yurthub-1.4, same-port', seen({ counts: { Serving: 2 } })),
    rowOf('legacy, same-port', seen({ counts: { Serving: 2 } }), seen({ counts: { Serving: 1 } })),
    rowOf('yurthub-1.4, switched-off', seen({ counts: { Stuck: 3 } })),
    rowOf('legacy, switched-off', seen({ counts: { Serving: 3 } })),
    rowOf('legacy, rolling-update', seen({ changes: comesBack, happened: short(2_500) })),
  ]
  const record: Record = { made, rows }
  t.strictSame(sentencesOf(record), [
    'Seen with Kubernetes v1, containerd 2, on 2030-01-01; two cores.',
    'Of 5 rows 4 were seen once, 1 was seen 2 times.',
    '`yurthub-1.4` and `legacy` come to the same in 1 of 2 rows; they differ in: two pods, a port each; propagation is switched off; a third pod (3 Stuck; ours 3 Serving).',
    'In the update with maxSurge 1, where many do not go on, one is for up to 2.5 s short of service, of those that serve before.',
  ])
  const ends = (...all: readonly Row[]) => sentencesOf({ made, rows: all })[4]
  const serves = seen({ changes: breaks.slice(0, 1), happened: short(0) })
  const hangs = seen({ changes: breaks, happened: short(8_000) })
  t.equal(
    ends(
      rowOf('legacy, update-in-place', serves, hangs, hangs),
      rowOf('legacy-cni, update-in-place', hangs),
      rowOf('admission, update-in-place', serves, serves),
      rowOf('explicit, update-in-place', serves),
      rowOf('plain, update-in-place', neverServes),
    ),
    'The update with maxSurge 0 ends under `legacy` in 1 of 3 runs, under `legacy-cni` in 0 of 1; under `admission`, `explicit` in each run.',
  )
  const surges = (...runs: readonly Observed[]) =>
    sentencesOf({ made, rows: [rowOf('plain, rolling-update', ...runs)] })[3]
  t.match(surges(neverServes), /none serves before/)
  const unharmed = seen({ changes: breaks.slice(0, 1), happened: short(0) })
  t.match(
    surges(neverServes, unharmed),
    /none is ever short of service, of those that serve before/,
  )
  t.equal(
    sentencesOf({ made: { ...made, minutes: [16.94, 16.3] }, rows })[1],
    'The runs took 16.9 and 16.3 minutes.',
  )
  const [, repeated] = sentencesOf({ made, rows: rows.slice(2) })
  t.equal(repeated, 'Each of 3 rows was seen once.')
  const page = 'before\n<!-- of the record -->\nformer\n<!-- end of it -->\nafter\n'
  t.equal(withSentences(page, record), page.replace('former', sentencesOf(record).join('\n')))
})
