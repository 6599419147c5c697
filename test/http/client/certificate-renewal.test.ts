import t from 'tap'
import {
  CertificateRenewal,
  type RenewalAttempt,
} from '../../../src/http/client/certificate-renewal.ts'
import { RequestDenied } from '../../../src/http/client/signed-certificate.ts'
import { Condition } from '../../kit/condition.ts'

const minuteMs = 60_000
const pace = {
  firstRetryMs: 1,
  longestRetryMs: minuteMs,
  approvalMs: 1_000,
  longestPendingMs: 1,
  longestDeniedMs: 60 * minuteMs,
  lookMs: 1,
}

void t.test('after each denial the next request is made later, up to a limit', async (t) => {
  const failed = new Condition()
  const attempts: RenewalAttempt[] = []
  await using renewal = new CertificateRenewal({
    dueMs: () => 0,
    obtain: async (attempt) => {
      attempts.push(attempt)
      throw new RequestDenied(`for the ${attempts.length}. time`)
    },
    onFailure: () => failed.changed(),
    pace,
  })
  for (const [i, mostMinutes] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
    await failed.until(() => renewal.fault?.startsWith(`for the ${i + 1}. time;`) ?? false)
    const at = Date.parse(renewal.fault?.split(' is made at ')[1] ?? '')
    const minutes = (at - Date.now()) / minuteMs
    // The time is given in whole seconds, and a machine may be slow.
    t.ok(minutes <= mostMinutes && minutes > mostMinutes / 2 - 0.4, `${minutes} minutes`)
    t.equal(attempts.length, i + 1, 'none is made before')
    renewal.retry()
  }
  t.strictSame(
    attempts.slice(0, 3).map(({ wasDenied }) => wasDenied),
    [false, true, true],
  )
})
