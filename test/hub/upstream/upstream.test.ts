import t from 'tap'
import { keepProcessAlive, elapsed, sleep } from '../../../src/base/clock.ts'
import { UpstreamGone, Upstream, type HealthRules } from '../../../src/hub/upstream/upstream.ts'
import type { HealthStatus } from '../../../src/hub/upstream/upstream-health.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { patientRules, Probes, type Health } from './probes.ts'

const origin = 'http://one'

interface Judged {
  readonly probes: Probes
  readonly upstream: Upstream
  readonly verdicts: HealthStatus[]
  /** One probe, answered so. */
  readonly probe: (health: Health) => Promise<boolean>
}

function judged(t: Teardown, rules: Partial<HealthRules> = {}): Judged {
  const probes = new Probes()
  const verdicts: HealthStatus[] = []
  const upstream = new Upstream(
    origin,
    probes.probe,
    { ...patientRules, ...rules },
    { onHealth: ({ health }) => verdicts.push(health) },
  )
  t.teardown(() => upstream.close())
  return {
    probes,
    upstream,
    verdicts,
    probe: (health) => {
      probes.set(origin, health)
      return upstream.probe()
    },
  }
}

void t.test('the first probe decides, either way', async (t) => {
  for (const [health, verdict] of [
    ['good', 'healthy'],
    ['bad', 'unhealthy'],
  ] as const) {
    const { upstream, verdicts, probe } = judged(t, { failedRetry: 5, healthyThreshold: 5 })
    t.equal(await probe(health), health === 'good')
    t.equal(upstream.health, verdict)
    t.strictSame(verdicts, [verdict])
    t.equal(upstream.isGone, verdict === 'unhealthy')
  }
})

void t.test('only so many failures in a row make a healthy upstream unhealthy', async (t) => {
  const { verdicts, probe } = judged(t, { failedRetry: 3 })
  for (const health of ['good', 'good', 'bad', 'bad', 'good', 'bad', 'bad'] as const)
    await probe(health)
  t.strictSame(verdicts, ['healthy'])
  await probe('bad')
  t.strictSame(verdicts, ['healthy', 'unhealthy'])
})

void t.test('only so many successes in a row make an unhealthy one healthy', async (t) => {
  const { verdicts, probe } = judged(t, { healthyThreshold: 3 })
  for (const health of ['bad', 'good', 'good', 'bad', 'good', 'good'] as const) await probe(health)
  t.strictSame(verdicts, ['unhealthy'])
  await probe('good')
  t.strictSame(verdicts, ['unhealthy', 'healthy'])
  await probe('good')
  t.equal(verdicts.length, 2, 'health is reported when it changes')
})

void t.test('requests under way are stopped when the upstream stops being healthy', async (t) => {
  const { upstream, probe } = judged(t, { failedRetry: 1, healthyThreshold: 1 })
  await probe('good')
  const reasons: unknown[] = []
  upstream.underWay.add({ stop: (reason) => reasons.push(reason) })
  await probe('good')
  t.strictSame([upstream.isGone, reasons.length], [false, 0])
  await probe('bad')
  t.equal(upstream.isGone, true)
  t.type(reasons[0], UpstreamGone)
  await probe('good')
  t.equal(reasons.length, 1)
  t.equal(upstream.isGone, false)
})

void t.test('concurrent callers share one probe and its outcome', async (t) => {
  const { probes, upstream } = judged(t)
  probes.set(origin, 'silent')
  const both = [upstream.probe(), upstream.probe()]
  probes.set(origin, 'good')
  t.strictSame(await Promise.all(both), [true, true])
  t.equal(probes.asked.length, 1)
  await upstream.probe()
  t.equal(probes.asked.length, 2)
})

void t.test('probes follow each other until the upstream is closed', async (t) => {
  using _alive = keepProcessAlive()
  const { probes, upstream } = judged(t, { intervalMs: 1 })
  await upstream.probe()
  await probes.sent(4)
  upstream.close()
  const after = probes.asked.length
  const other = judged(t, { intervalMs: 1 })
  await other.upstream.probe()
  await other.probes.sent(6)
  t.equal(probes.asked.length, after, 'while another goes on')
})

void t.test(
  'while a verdict is about to change the next probe does not wait for its time',
  async (t) => {
    using _alive = keepProcessAlive()
    const { probes, upstream, verdicts, probe } = judged(t)
    await probe('good')
    await probe('bad')
    await probes.sent(3)
    t.equal(await upstream.probe(), false)
    t.strictSame(verdicts, ['healthy', 'unhealthy'])
  },
)

void t.test('failed probes within a moment count as one failure', async (t) => {
  const { probes, upstream, verdicts, probe } = judged(t, { failedRetry: 3, gapMs: 1_000_000 })
  await probe('good')
  for (let i = 0; i < 6; i++) t.equal(await probe('bad'), false, 'yet each has its outcome')
  t.equal(probes.asked.length, 7)
  t.strictSame(verdicts, ['healthy'])
  t.equal(upstream.isGone, false)
  await probe('good')
  t.equal(await probe('bad'), false)
  t.strictSame(verdicts, ['healthy'])
})

void t.test('probes at their interval count, however many others run between', async (t) => {
  using _alive = keepProcessAlive()
  const { upstream, verdicts, probe } = judged(t, { gapMs: 1_000_000 })
  await probe('good')
  const over = new Promise((resolve) => upstream.underWay.add({ stop: resolve }))
  await probe('bad')
  let asking = true
  void (async () => {
    while (asking) {
      await upstream.probe()
      await new Promise(setImmediate)
    }
  })()
  await over
  asking = false
  t.strictSame(verdicts, ['healthy', 'unhealthy'])
})

void t.test('closing ends the tenure, and a late probe does not count', async (t) => {
  const { probes, upstream, verdicts, probe } = judged(t, { failedRetry: 1 })
  await probe('good')
  probes.set(origin, 'silent')
  const late = upstream.probe()
  upstream.close()
  t.equal(upstream.isGone, true)
  probes.set(origin, 'bad')
  t.equal(await late, false)
  t.strictSame(verdicts, ['healthy'])
})

void t.test('answersWithin gives up before its probe ends', async (t) => {
  using _alive = keepProcessAlive()
  const { probes, upstream } = judged(t)
  t.equal(await upstream.answersWithin(1_000_000), true)
  probes.set(origin, 'bad')
  t.equal(await upstream.answersWithin(1_000_000), false)
  probes.set(origin, 'silent')
  t.equal(await upstream.answersWithin(1), false)
  probes.set(origin, 'good')
})

void t.test('an upstream is not silent while this process is blocked', async (t) => {
  using _alive = keepProcessAlive()
  const { probes, upstream } = judged(t)
  probes.set(origin, 'silent')
  const there = upstream.answersWithin(200)
  const began = elapsed()
  while (elapsed() - began < 300);
  // As bytes would that have to come and go several times.
  await sleep(1)
  await sleep(1)
  probes.set(origin, 'good')
  t.equal(await there, true)
})

void t.test('an API server that is not ready is neither healthy nor gone', async (t) => {
  const { upstream, verdicts, probe } = judged(t)
  await probe('good')
  t.equal(await probe('unready'), true)
  await probe('unready')
  t.strictSame(verdicts, ['healthy', 'unready'])
  t.equal(upstream.availability, 'unready')
  t.match(upstream.lastError, { code: 'NOT_READY' })
  t.equal(upstream.isGone, false, 'what is under way there goes on')
  await probe('bad')
  await probe('bad')
  t.equal(upstream.isGone, true)
  await probe('unready')
  await probe('good')
  t.strictSame(verdicts, ['healthy', 'unready', 'unhealthy', 'unready'])
  t.equal(upstream.isGone, false)
})

void t.test('among different failures of probes the milder one counts', async (t) => {
  const { verdicts, probe } = judged(t, { failedRetry: 3 })
  for (const health of ['good', 'bad', 'unready', 'bad'] as const) await probe(health)
  t.strictSame(verdicts, ['healthy', 'unready'])
})

void t.test('an upstream that sends bytes is not dead, however late its probes are', async (t) => {
  const { probes, upstream, verdicts, probe } = judged(t, { failedRetry: 1 })
  await probe('good')
  for (let i = 0; i < 3; i++) {
    probes.set(origin, 'silent')
    const late = upstream.probe()
    upstream.receivedAt = elapsed()
    probes.set(origin, 'late')
    t.equal(await late, true)
  }
  probes.set(origin, 'silent')
  const slow = upstream.answersWithin(1)
  upstream.receivedAt = elapsed()
  using _alive = keepProcessAlive()
  t.equal(await slow, true)
  t.strictSame(verdicts, ['healthy'])
  probes.set(origin, 'good')
  await upstream.probe()
  t.equal(await probe('late'), false, 'silence altogether is silence')
  t.strictSame(verdicts, ['healthy', 'unhealthy'])
})

void t.test('a refused probe counts, though bytes still arrive', async (t) => {
  const { probes, upstream, verdicts, probe } = judged(t, { failedRetry: 1 })
  await probe('good')
  probes.set(origin, 'silent')
  const refused = upstream.probe()
  upstream.receivedAt = elapsed()
  probes.set(origin, 'bad')
  t.equal(await refused, false)
  t.strictSame(verdicts, ['healthy', 'unhealthy'])
})

void t.test(
  'after a connection to it broke, others are tried first until a probe finds it ready',
  async (t) => {
    const { probes, upstream, probe } = judged(t)
    await probe('good')
    probes.set(origin, 'silent')
    const begunBefore = upstream.probe()
    upstream.broken()
    t.strictSame([upstream.availability, upstream.isStarting], ['ejected', true])
    probes.set(origin, 'good')
    await begunBefore
    t.equal(upstream.availability, 'ejected', 'its answer may be from before the break')
    await probes.sent(3)
    await upstream.probe()
    t.strictSame([upstream.availability, upstream.isStarting], ['ready', false])
  },
)

void t.test('an upstream is unresponsive until it sends bytes or answers a probe', async (t) => {
  const { probes, upstream, verdicts, probe } = judged(t)
  await probe('good')
  let told = 0
  const waiting = { giveUp: () => void told++, check: () => undefined }
  const answered = {
    ...waiting,
    giveUp: () => t.fail('a request that was answered is not given up'),
  }
  for (const each of [waiting, answered]) upstream.wait(each)
  upstream.waitNoLonger(answered)
  probes.set(origin, 'bad')
  t.equal(await upstream.answersWithin(1_000_000), false)
  t.strictSame([told, upstream.availability], [1, 'unresponsive'])
  upstream.receivedAt = elapsed()
  t.equal(upstream.availability, 'ready', 'until it speaks')
  await probe('late')
  t.strictSame([told, upstream.availability, upstream.health], [2, 'unhealthy', 'unhealthy'])
  await probe('unready')
  await probe('unready')
  t.equal(upstream.availability, 'unready', 'or answers a probe')
  await probe('late')
  t.equal(upstream.availability, 'unresponsive')
  t.strictSame(verdicts, ['healthy', 'unhealthy', 'unready'])
})

void t.test('an upstream that has just sent bytes is not probed again', async (t) => {
  const { probes, upstream, probe } = judged(t)
  await probe('good')
  upstream.receivedAt = elapsed()
  probes.set(origin, 'bad')
  t.equal(await upstream.answersWithin(1_000_000), true)
  t.equal(probes.asked.length, 1)
})

void t.test('an unhealthy upstream is probed before its interval is over', async (t) => {
  using _alive = keepProcessAlive()
  const { probes, verdicts, probe } = judged(t, { intervalMs: 1_000_000, healthyThreshold: 1 })
  await probe('bad')
  probes.set(origin, 'good')
  await probes.sent(2)
  await new Promise(setImmediate)
  t.strictSame(verdicts, ['unhealthy', 'healthy'])
})

void t.test('the hub’s patience is no shorter than recent probes took', async (t) => {
  using _alive = keepProcessAlive()
  const { probes, upstream } = judged(t)
  probes.set(origin, 'silent')
  const long = upstream.probe()
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  probes.set(origin, 'good')
  await long
  probes.set(origin, 'silent')
  const there = upstream.answersWithin(1)
  await new Promise((resolve) => setTimeout(resolve, 10))
  probes.set(origin, 'good')
  t.equal(await there, true)
})
