import t from 'tap'
import { modelRows } from '../../../bench/host-network/table.ts'
import { watchOf } from '../../../bench/host-network/watch.ts'

const watched = (name: string) => {
  const row = modelRows().find(({ arm, workload }) => `${arm.name}, ${workload.name}` === name)
  if (!row) throw new Error(`there is no row ${name}`)
  return watchOf(row, 20_000)
}

void t.test('both hubs are watched for as long once the filter was switched off', async (t) => {
  const watch = { atLeastMs: 90_000, evenIfAllServe: true }
  for (const arm of ['yurthub-1.4', 'legacy', 'legacy-cni'])
    t.strictSame(watched(`${arm}, switched-off`), watch, arm)
  t.strictSame(watched('explicit, switched-off'), { atLeastMs: 0, evenIfAllServe: false })
})

void t.test('pods that crash or are stuck are watched for as long by every arm', async (t) => {
  const rows = modelRows().filter(
    ({ modelled }) =>
      modelled.counts.CrashLoop !== undefined || modelled.counts.Stuck !== undefined,
  )
  t.ok(rows.length > 25)
  for (const row of rows) t.ok(watchOf(row, 0).atLeastMs >= 30_000, row.arm.name)
})

void t.test('rows with random outcomes or measurements wait longer', async (t) => {
  t.equal(watched('legacy, update-in-place').atLeastMs, 60_000)
  t.equal(watched('standard, distinct-ports').atLeastMs, 20_000)
  t.equal(watched('plain, distinct-ports').atLeastMs, 30_000)
  t.equal(watched('standard, same-port').atLeastMs, 0)
})
