import { join } from 'node:path'
import t from 'tap'
import { arms } from '../../../bench/host-network/arms.ts'
import { isAsExpected } from '../../../bench/host-network/outcome.ts'
import {
  mergeIntoRecord,
  readRecord,
  type Record,
  writeRecord,
} from '../../../bench/host-network/record.ts'
import { agrees, modelRows } from '../../../bench/host-network/table.ts'
import { workloads } from '../../../bench/host-network/workloads.ts'

void t.test('the record that documents show has every row, each as the model has it', async (t) => {
  const { rows } = readRecord()
  t.equal(rows.length, arms.length * workloads.length)
  for (const row of rows) t.ok(agrees(row), `${row.arm.name}, ${row.workload.name}`)
})

void t.test('each pod that serves after a reboot is recorded with its restart', async (t) => {
  const rebooted = readRecord().rows.filter(({ workload }) => workload.name === 'offline-reboot')
  for (const { arm, runs } of rebooted)
    for (const { counts, restarts } of runs) t.ok(restarts >= (counts.Serving ?? 0), arm.name)
  t.ok(rebooted.some(({ runs }) => runs.some(({ counts }) => counts.Serving === 3)))
})

void t.test('a row whose pods differ beforehand is not a match', async (t) => {
  const row = readRecord().rows.find(
    ({ arm, workload }) => arm.name === 'explicit' && workload.name === 'holder-ends',
  )
  const [seen] = row?.runs ?? []
  if (!row || !seen?.happened) throw new Error('there is no row')
  const { atMs } = seen.happened
  const changes = seen.changes.map((each) =>
    each.ms < atMs && each.state === 'Unschedulable'
      ? { ...each, state: 'Serving' as const }
      : each,
  )
  t.notSame(changes, seen.changes)
  t.ok(agrees({ ...row, runs: [seen] }))
  t.notOk(agrees({ ...row, runs: [{ ...seen, changes }] }), 'is another result')
  const { happened, ...never } = seen
  t.notOk(agrees({ ...row, runs: [never] }), `it began at ${happened.atMs} ms, or never`)
})

void t.test('a pod that the API shows differently is another result', async (t) => {
  const [row] = readRecord().rows
  const seen = row?.runs[0]
  if (!seen) throw new Error('there is no row')
  t.ok(isAsExpected(seen, seen))
  t.notOk(isAsExpected({ ...seen, misrepresented: seen.misrepresented + 1 }, seen))
  t.notOk(isAsExpected({ ...seen, counts: { ...seen.counts, Stuck: 1 } }, seen))
  t.notOk(isAsExpected({ ...seen, said: { ...seen.said, 'Failed on the pod network': 1 } }, seen))
  t.notOk(isAsExpected({ ...seen, remarks: { 'Ready without serving': 1 } }, seen))
})

void t.test('a record is read back, without rows that were not run', async (t) => {
  const whole = readRecord()
  const [first, second] = whole.rows
  const unseen = modelRows().find(({ arm }) => arm !== first?.arm && arm !== second?.arm)
  if (!first || !second || !unseen) throw new Error('there are no rows')
  const record: Record = { ...whole, rows: [first, second, unseen] }
  const file = join(t.testdir(), 'record.json')
  writeRecord(record, file)
  t.strictSame(readRecord(file), { ...record, rows: [first, second] })
})

void t.test('durations are kept while all rows are of the same runs', async (t) => {
  const whole = readRecord()
  const [first, second] = whole.rows
  if (!first || !second) throw new Error('there are no rows')
  const file = join(t.testdir(), 'record.json')
  const made = { ...whole.made, minutes: [16.9, 16.3] }
  writeRecord({ made: whole.made, rows: [first, second] }, file)
  mergeIntoRecord({ made, rows: [first, second] }, file)
  t.strictSame(readRecord(file).made, made)
  mergeIntoRecord({ made: { ...made, minutes: [2] }, rows: [first] }, file)
  t.equal(readRecord(file).made.minutes, undefined)
})

void t.test('later rows replace the same rows, and keep others', async (t) => {
  const whole = readRecord()
  const [first, second] = whole.rows
  const seen = second?.runs[0]
  if (!first || !second || !seen) throw new Error('there are no rows')
  const file = join(t.testdir(), 'record.json')
  writeRecord({ ...whole, rows: [first, second] }, file)
  const later = { ...second, runs: [{ ...seen, restarts: 7 }] }
  mergeIntoRecord({ made: { ...whole.made, date: '2030-01-01' }, rows: [later] }, file)
  const { made, rows } = readRecord(file)
  t.equal(made.date, '2030-01-01')
  t.strictSame(rows, [first, later])
})
