import pino from 'pino'
import t from 'tap'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { FailureLog } from '../../../src/hub/wiring/failure-log.ts'
import { Condition } from '../../kit/condition.ts'

interface Line {
  readonly filter: string
  readonly objects: number
  readonly err: { readonly message: string }
}

/** What a log of failures says; `said(n)` waits for so many lines. */
function logged(together?: number) {
  const lines: Line[] = []
  const condition = new Condition()
  const stream = {
    write: (line: string): void => {
      lines.push(JSON.parse(line) as Line)
      condition.changed()
    },
  }
  const failures = new FailureLog(pino({}, stream), together)
  const said = async (count: number): Promise<readonly Line[]> => {
    await condition.until(() => lines.length >= count)
    return lines
  }
  const brief = (): unknown[] =>
    lines.map(({ filter, objects, err }) => [filter, objects, err.message])
  return { failures, said, brief }
}

const long = 3_600_000

void t.test('a filter that fails at many objects is logged once, and then counted', async (t) => {
  const { failures, brief } = logged(long)
  for (let object = 0; object < 5_000; object += 1) failures.add('one', new Error('no such field'))
  failures.add('other', new Error('no such field'))
  failures.add('one', new Error('too deep'))
  const atOnce = [
    ['one', 1, 'no such field'],
    ['other', 1, 'no such field'],
    ['one', 1, 'too deep'],
  ]
  t.strictSame(brief(), atOnce)
  failures[Symbol.dispose]()
  t.strictSame(brief(), [...atOnce, ['one', 4_999, 'no such field']])
})

void t.test('the count is logged when the time is over, and later failures anew', async (t) => {
  using _process = keepProcessAlive()
  const { failures, said, brief } = logged(5)
  failures.add('one', new Error('no such field'))
  failures.add('one', new Error('no such field'))
  await said(2)
  // It may count for the time after the second line, or be logged at once.
  failures.add('one', new Error('no such field'))
  await said(3)
  t.strictSame(
    brief(),
    Array.from({ length: 3 }, () => ['one', 1, 'no such field']),
  )
  failures[Symbol.dispose]()
})

void t.test('messages that name each object do not make it a line an object', async (t) => {
  const { failures, brief } = logged(long)
  for (let object = 0; object < 5_000; object += 1) failures.add('one', new Error(`at ${object}`))
  t.equal(brief().length, 9)
  failures[Symbol.dispose]()
  t.strictSame(brief().at(-1), ['one', 4_991, 'at 4999'])
})
