import t from 'tap'
import { turn } from '../../src/base/clock.ts'
import { FreshRead } from '../../src/base/fresh-read.ts'
import { setClock } from '../kit/set-clock.ts'
import { until } from '../kit/until.ts'

/** Reads that end when they are told to; `begun` counts them. */
function reads(): { begun: number; end: () => void; read: () => Promise<number> } {
  const ends: (() => void)[] = []
  const state = {
    begun: 0,
    end: () => ends.shift()?.(),
    read: () => {
      state.begun += 1
      const number = state.begun
      return new Promise<number>((resolve) => ends.push(() => resolve(number)))
    },
  }
  return state
}

void t.test('callers that arrive during a read share the next read', async (t) => {
  const source = reads()
  const shared = new FreshRead(source.read)
  const first = shared.get()
  const [second, third] = [shared.get(), shared.get()]
  t.equal(source.begun, 1)
  source.end()
  t.equal(await first, 1)
  await until('the second read', () => source.begun >= 2)
  source.end()
  t.strictSame(await Promise.all([second, third]), [2, 2])
})

void t.test('a read that fails rejects only the callers that shared it', async (t) => {
  let begun = 0
  const shared = new FreshRead(async () => {
    begun += 1
    if (begun === 1) throw new Error('unreadable')
    return 'read'
  })
  const first = shared.get()
  const second = shared.get()
  await t.rejects(first, { message: 'unreadable' })
  t.equal(await second, 'read')
})

void t.test('a caller prompted by a read’s result shares the next read', async (t) => {
  const source = reads()
  const shared = new FreshRead(source.read)
  const first = shared.get()
  const [other, asksOn] = [shared.get(), first.then(() => shared.get())]
  source.end()
  await until('the second read', () => source.begun >= 2)
  source.end()
  t.equal(await other, 2)
  // Were it to wait for a third one, that would have begun by now.
  for (let i = 0; i < 3; i++) await turn()
  t.equal(source.begun, 2)
  source.end()
  t.equal(await asksOn, 2)
})

void t.test(
  'a long read is followed by a rest of twice its time, a short one by none',
  async (t) => {
    const clock = setClock(t, { once: true })
    const source = reads()
    const shared = new FreshRead(source.read, 10)
    const read = async (ms: number): Promise<void> => {
      const reading = shared.get()
      clock.forward(ms)
      source.end()
      await reading
    }
    await read(9)
    await read(40)
    t.equal(source.begun, 2, 'after a short read the next begins at once')
    const rested = shared.get()
    await turn()
    clock.forward(79)
    await turn()
    t.equal(source.begun, 2)
    clock.forward(1)
    await until('the third read', () => source.begun >= 3)
    source.end()
    t.equal(await rested, 3)
  },
)

void t.test('an urgent read cuts the pause short and serves its waiters', async (t) => {
  const clock = setClock(t, { once: true })
  const source = reads()
  const shared = new FreshRead(source.read, 10)
  const first = shared.get()
  clock.forward(40)
  source.end()
  await first
  const waiting = shared.get()
  await turn()
  t.equal(source.begun, 1)
  const urgent = shared.get(true)
  await until('the second read', () => source.begun >= 2)
  const next = shared.get(true)
  clock.forward(40)
  source.end()
  t.strictSame(await Promise.all([waiting, urgent]), [2, 2])
  await until('the third read, without a rest', () => source.begun >= 3)
  source.end()
  t.equal(await next, 3)
})
