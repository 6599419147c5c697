import t from 'tap'
import { turn } from '../../src/base/clock.ts'
import { FreshRead } from '../../src/base/fresh-read.ts'
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
