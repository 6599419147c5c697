import t from 'tap'
import { RecentLines } from '../../src/base/recent-lines.ts'

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
