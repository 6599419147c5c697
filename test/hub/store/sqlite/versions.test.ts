import t from 'tap'
import {
  nextVersion,
  isAtLeast,
  isPast,
  mayFollow,
  newest,
} from '../../../../src/hub/store/sqlite/versions.ts'

void t.test('an older version takes no place, and what does not compare takes any', async (t) => {
  t.strictSame(
    [mayFollow('9', '10'), mayFollow('10', '10'), mayFollow('11', '10'), mayFollow('x', '10')],
    [false, true, true, true],
  )
  t.strictSame(
    [isAtLeast('10', '10'), isAtLeast('9', '10'), isAtLeast('x', 'x')],
    [true, false, true],
  )
  t.strictSame([isPast('10', '10'), isPast('11', '10'), isPast('x', 'x')], [true, false, false])
})

void t.test(
  'a collection’s version goes forward, and never to one that no server issues',
  async (t) => {
    for (const [stored, next, then] of [
      ['10', '11', '11'],
      ['10', '9', '10'],
      ['10', '', '10'],
      ['10', '0', '10'],
      ['', '11', '11'],
      ['', '0', ''],
      ['x', '', 'x'],
      ['x', '0', 'x'],
      ['x', 'y', 'y'],
    ] as const)
      t.equal(newest(stored, next), then, `${stored} and ${next}`)
  },
)

void t.test('the version after one is the next number, however long it is', async (t) => {
  t.equal(nextVersion('9'), '10')
  t.equal(nextVersion('9007199254740993'), '9007199254740994')
  t.equal(nextVersion('x'), '')
})
