import t from 'tap'
import { after, afterAwake, elapsed, latest, now } from '../../src/base/clock.ts'

/** A process with a timer only that keeps it alive: the ones under test do not. */
const alive = (): NodeJS.Timeout => setTimeout(() => undefined, 30_000)

/** Gives nothing else a turn for `ms`. */
function stall(ms: number): void {
  const began = elapsed()
  while (elapsed() - began < ms);
}

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

void t.test('latest() prefers times in the past', async (t) => {
  const [past, ahead] = [now() - 1000, now() + 60_000]
  t.equal(latest(past, ahead, past - 1), past)
  t.equal(latest(ahead, ahead + 1), ahead + 1)
})
