import { setImmediate } from 'node:timers/promises'
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

void t.test('a certificate that is due at once is replaced ever more rarely', async (t) => {
  let elapsed = 0
  t.capture(performance, 'now', () => elapsed)
  let due = 0
  const obtained = new Condition()
  let certificates = 0
  await using renewal = new CertificateRenewal({
    dueMs: () => due,
    obtain: async () => {
      certificates += 1
      obtained.changed()
    },
    onFailure: (why) => t.fail(why),
    pace: { ...pace, lookMs: minuteMs },
  })
  const waited = async (minutes: number): Promise<void> => {
    elapsed += minutes * minuteMs
    renewal.wake()
    await setImmediate()
  }
  await obtained.until(() => certificates === 1)
  for (const [i, minutes] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
    await waited(minutes - 0.1)
    t.equal(certificates, i + 1)
    await waited(0.1)
    t.equal(certificates, i + 2, `after ${minutes} minutes`)
  }
  due = 1
  await waited(0)
  due = 0
  await waited(0)
  t.equal(certificates, 10, 'at once when the clock has been right meanwhile')
  await waited(1)
  t.equal(certificates, 11)
})

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
    // The time is told in whole seconds, and a machine may be slow.
    t.ok(minutes <= mostMinutes && minutes > mostMinutes / 2 - 0.4, `${minutes} minutes`)
    t.equal(attempts.length, i + 1, 'none is made before')
    renewal.retry()
  }
  t.strictSame(
    attempts.slice(0, 3).map(({ wasDenied }) => wasDenied),
    [false, true, true],
  )
})
