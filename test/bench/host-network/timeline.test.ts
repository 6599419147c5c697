import t from 'tap'
import { modelRows, type Row } from '../../../bench/host-network/table.ts'
import { timelineOf } from '../../../bench/host-network/timeline.ts'
import type { Change } from '../../../bench/host-network/series.ts'

void t.test(
  'a pod has a bar of its states, until its deletion or the end of the run',
  async (t) => {
    const row = modelRows().find(({ workload }) => workload.happens !== undefined)
    if (!row) throw new Error('there are no rows')
    const changes: readonly Change[] = [
      { ms: 0, pod: 'a', state: 'Starting' },
      { ms: 100, pod: 'b', state: 'Starting' },
      { ms: 2_000, pod: 'a', state: 'Serving' },
      { ms: 4_000, pod: 'b', state: 'CrashLoop' },
      { ms: 5_000, pod: 'a', state: 'Gone' },
    ]
    const seen = {
      settledMs: 5_000,
      watchedMs: 8_000,
      restarts: 1,
      events: {},
      writes: {},
      changes,
    }
    const rows: readonly Row[] = [{ ...row, runs: [{ ...row.modelled, ...seen }] }]
    const titles = [...timelineOf(rows, 'made so').matchAll(/<title>(.*)<\/title>/g)].flatMap(
      ([, title = '']) => (/ from /.test(title) ? title.slice(title.lastIndexOf(',') + 2) : []),
    )
    t.strictSame(titles, [
      'a: Starting from 0 s to 2 s',
      'a: Serving from 2 s to 5 s',
      'b: Starting from 0 s to 4 s',
      'b: CrashLoop from 4 s to 8 s',
    ])
  },
)

void t.test('for several runs the picture marks pods that differ in another', async (t) => {
  const row = modelRows().find(({ workload }) => workload.happens !== undefined)
  if (!row) throw new Error('there are no rows')
  const seen = {
    ...row.modelled,
    settledMs: 5_000,
    watchedMs: 8_000,
    restarts: 0,
    events: {},
    writes: {},
    changes: [],
  }
  const marks = (...runs: Row['runs']) =>
    timelineOf([{ ...row, runs }], 'made so').split('>~<').length - 1
  t.equal(marks(seen, seen), 0)
  t.equal(marks(seen, { ...seen, counts: { CrashLoop: 1 } }), 1)
  const picture = timelineOf([{ ...row, runs: [seen] }], 'made so')
  t.match(picture, /of several runs the one .* ~ {2}in another run/)
})
