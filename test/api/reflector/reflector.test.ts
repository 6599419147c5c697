import t from 'tap'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { Reflector } from '../../../src/api/reflector/reflector.ts'
import { Condition } from '../../kit/condition.ts'

void t.test('a list that is not held is repeated later than one that failed', async (t) => {
  const condition = new Condition()
  const ending = new AbortController()
  const alive = keepProcessAlive()
  t.teardown(() => (ending.abort(), alive[Symbol.dispose]()))
  /** A collection that is not held after `list`; the number of lists. */
  const reflecting = (list: () => Promise<void>): { lists: number } => {
    const counted = { lists: 0 }
    const listerWatcher = {
      list: async (): Promise<void> => {
        counted.lists += 1
        condition.changed()
        await list()
      },
      watch: (): Promise<never> => Promise.reject(new Error('nothing is held')),
    }
    const nothing = (): void => undefined
    const handler = { onOpen: nothing, onEvents: nothing, onClosed: nothing, onFailed: nothing }
    const parts = { listerWatcher, version: () => undefined }
    void new Reflector(parts, handler).run(ending.signal)
    return counted
  }
  // The pauses are random.
  const several = (list: () => Promise<void>): { lists: number }[] =>
    Array.from({ length: 8 }, () => reflecting(list))
  const notHeld = several(async () => undefined)
  const failing = several(() => Promise.reject(new Error('no answer')))
  await condition.until(() => failing.every(({ lists }) => lists >= 2))
  for (const { lists } of notHeld) t.equal(lists, 1)
})
