import { join } from 'node:path'
import t from 'tap'
import { arms } from '../../../bench/host-network/arms.ts'
import { sameResult } from '../../../bench/host-network/outcome.ts'
import { type Run, readRun, writeRun } from '../../../bench/host-network/record.ts'
import { agrees, modelRows } from '../../../bench/host-network/table.ts'
import { workloads } from '../../../bench/host-network/workloads.ts'

void t.test('every row of the run that documents show is as the model has it', async (t) => {
  const { rows } = readRun()
  t.equal(rows.length, arms.length * workloads.length)
  for (const row of rows) t.ok(agrees(row), `${row.arm.name}, ${row.workload.name}`)
})

void t.test('a pod that the API says something else of is another result', async (t) => {
  const [row] = readRun().rows
  const seen = row?.observed
  if (!seen) throw new Error('there is no row')
  t.ok(sameResult(seen, { ...seen }))
  t.notOk(sameResult(seen, { ...seen, misrepresented: seen.misrepresented + 1 }))
  t.notOk(sameResult(seen, { ...seen, counts: { ...seen.counts, Stuck: 1 } }))
  t.notOk(sameResult(seen, { ...seen, said: { ...seen.said, 'Failed on the pod network': 1 } }))
})

void t.test(
  'a run is read as it was written, and a row that was not seen is not in it',
  async (t) => {
    const whole = readRun()
    const run: Run = { ...whole, rows: [...whole.rows.slice(0, 4), ...modelRows().slice(4, 5)] }
    const file = join(t.testdir(), 'run.json')
    writeRun(run, file)
    t.strictSame(readRun(file), { ...run, rows: whole.rows.slice(0, 4) })
  },
)
