import t from 'tap'
import { churn, quarters } from '../../bench/churn.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'

void t.test('memory that grows shows between the second quarter and the last', async (t) => {
  t.strictSame(quarters([90, 50, 52, 51, 60, 61, 62, 64]), [51.5, 63])
  t.strictSame(quarters([1, 2, 3, 4]), [2, 4])
})

void t.test('rounds of churn are survived by every client', async (t) => {
  const lines: string[] = []
  const code = await churn(
    { rounds: 4, seconds: 0.4, hub: nodehubProgram },
    (line) => void lines.push(line),
  )
  t.equal(
    lines.filter((line) => /^\d of 4: \d+ MB resident, \d+ MB of it anonymous$/.test(line)).length,
    4,
  )
  const failures = lines.filter((line) => /\d+ times: /.test(line))
  // It says that the machine is busy, and nothing of the hub.
  const slow = 'the API server did not take the writes in time'
  t.strictSame(
    failures.filter((line) => !line.endsWith(slow)),
    [],
  )
  const [, second, last, grows] =
    /^anonymous memory: (\d+) MB in the second quarter, (\d+) MB in the last: it (grows|does not grow); -?[\d.]+ MB an hour in the second half$/m.exec(
      lines.join('\n'),
    ) ?? []
  t.ok(Number(second) > 20 && Number(last) > 20)
  // So short a run is one in which everything is still being compiled.
  t.equal(code, grows === 'grows' || failures.length > 0 ? 1 : 0)
})
