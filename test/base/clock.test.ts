import t from 'tap'
import {
  after,
  afterAwake,
  elapsed,
  every,
  jitter,
  latest,
  now,
  sleep,
} from '../../src/base/clock.ts'

/** A process with a timer only that keeps it alive: the ones under test do not. */
const alive = (): NodeJS.Timeout => setTimeout(() => undefined, 30_000)

/** Gives nothing else a turn for `ms`. */
function stall(ms: number): void {
  const began = elapsed()
  while (elapsed() - began < ms);
}

void t.test('a timeout fires once, an interval fires until it is disposed of', async (t) => {
  const hold = alive()
  t.teardown(() => clearTimeout(hold))
  let once = 0
  after(1, () => once++)
  await new Promise<void>((resolve) => {
    let times = 0
    const timer = every(1, () => {
      if (++times < 3) return
      timer[Symbol.dispose]()
      resolve()
    })
  })
  t.equal(once, 1)
})

void t.test('a disposed timer never fires', async (t) => {
  const hold = alive()
  t.teardown(() => clearTimeout(hold))
  const happened: string[] = []
  after(1, () => happened.push('let go of'))[Symbol.dispose]()
  // Timers of one time fire in the order in which they were set.
  await new Promise<void>((resolve) => void after(1, resolve))
  t.strictSame(happened, [])
})

void t.test('a stalled event loop is not awake time', async (t) => {
  const hold = alive()
  t.teardown(() => clearTimeout(hold))
  const order: string[] = []
  const awake = new Promise<void>((resolve) => {
    afterAwake(400, () => resolve(void order.push('awake')))
    after(401, () => order.push('by the clock'))
  })
  afterAwake(1, () => t.fail('it was let go of'))[Symbol.dispose]()
  stall(500)
  await awake
  t.strictSame(order, ['by the clock', 'awake'])
})

void t.test('a sleeper is woken by its signal, and does not fall asleep after it', async (t) => {
  const controller = new AbortController()
  const asleep = sleep(1_000_000, controller.signal)
  controller.abort()
  t.equal(await asleep, undefined)
  t.equal(await sleep(1_000_000, controller.signal), undefined)
})

void t.test('jitter stays within its bounds', async (t) => {
  for (let i = 0; i < 100; i++) {
    const drawn = jitter(5, 6)
    t.ok(drawn >= 5 && drawn < 6)
  }
})

void t.test('the clock for measuring does not go back', async (t) => {
  const first = elapsed()
  t.ok(elapsed() >= first)
})

void t.test('latest() prefers times in the past', async (t) => {
  const [past, ahead] = [now() - 1000, now() + 60_000]
  t.equal(latest(past, ahead, past - 1), past)
  t.equal(latest(ahead, ahead + 1), ahead + 1)
})
