import t from 'tap'
import { LightAbort } from '../../src/base/abort.ts'
import { keepProcessAlive } from '../../src/base/clock.ts'
import { RecentItems, RecentLines } from '../../src/base/recent-items.ts'

void t.test('a reader gets the last items, and then those that are added', async (t) => {
  using _alive = keepProcessAlive()
  const items = new RecentItems<number>(3)
  for (const item of [1, 2, 3, 4]) items.add(item)
  t.strictSame(items.items, [2, 3, 4])
  const over = new LightAbort()
  const reader = items.follow(over.signal)
  t.strictSame((await reader.next()).value, [2, 3, 4])
  items.add(5)
  items.add(6)
  t.strictSame((await reader.next()).value, [5, 6])
  const waiting = reader.next()
  over.abort(undefined)
  t.equal((await waiting).done, true)
})

void t.test('a slow reader is cut', async (t) => {
  using _alive = keepProcessAlive()
  const items = new RecentItems<number>(2)
  items.add(1)
  const reader = items.follow(new LightAbort().signal)
  t.strictSame((await reader.next()).value, [1])
  for (const item of [2, 3, 4]) items.add(item)
  await t.rejects(reader.next(), { code: 'FELL_BEHIND' })
})

void t.test('the oldest lines go, by number and by length', async (t) => {
  const few = new RecentLines({ lines: 2, length: 100 })
  for (const line of ['a', 'b', 'c']) few.add(line)
  t.strictSame(few.lines, ['b', 'c'])
  const short = new RecentLines({ lines: 100, length: 10 })
  for (const line of ['1234', '5678', '90']) short.add(line)
  t.strictSame(short.lines, ['1234', '5678', '90'])
  short.add('+')
  t.strictSame(short.lines, ['5678', '90', '+'])
})

void t.test('an overlong line evicts no other line', async (t) => {
  const recent = new RecentLines({ lines: 2, length: 10 })
  recent.add('kept')
  recent.add('x'.repeat(11))
  t.strictSame(recent.lines, ['kept'])
})
