import t from 'tap'
import { turn } from '../../src/base/clock.ts'
import { WakeableSleep } from '../../src/base/wakeable-sleep.ts'

const hour = 3_600_000

void t.test('waking ends a sleep, and the next one lasts', async (t) => {
  const { sleeps, slept } = sleeper(new AbortController().signal)
  const first = slept()
  sleeps.wake()
  t.equal(await first, 'awake')
  const second = slept()
  t.equal(await Promise.race([second, lasting()]), 'lasting')
  sleeps.wake()
  t.equal(await second, 'awake')
})

void t.test('waking between two sleeps ends the next one', async (t) => {
  const { sleeps, slept } = sleeper(new AbortController().signal)
  sleeps.wake()
  t.equal(await slept(), 'awake')
})

void t.test('no sleep lasts once the loop is over', async (t) => {
  const over = new AbortController()
  const { slept } = sleeper(over.signal)
  const first = slept()
  over.abort()
  t.equal(await first, 'awake')
  t.equal(await slept(), 'awake')
})

function sleeper(over: AbortSignal): { sleeps: WakeableSleep; slept: () => Promise<string> } {
  const sleeps = new WakeableSleep(over)
  return { sleeps, slept: () => sleeps.sleep(hour).then(() => 'awake') }
}

const lasting = (): Promise<string> => turn().then(() => 'lasting')
