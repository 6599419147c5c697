import t from 'tap'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { WorkQueue } from '../../../src/cluster/controller/work-queue.ts'

t.setTimeout(300_000)

void t.test('a key added many times runs once, and once more if added meanwhile', async (t) => {
  const worked: string[] = []
  const first = Promise.withResolvers<void>()
  const queue = new WorkQueue({
    workers: 1,
    act: async (key) => {
      worked.push(key)
      if (worked.length === 1) await first.promise
      return undefined
    },
    onFailure: (_key, cause) => t.fail(String(cause)),
  })
  for (const key of ['a', 'b', 'b', 'a', 'a']) queue.add(key)
  queue.add('a')
  first.resolve()
  await queue.idle()
  t.strictSame(worked.filter((key) => key === 'a').length, 2)
  t.strictSame(worked.filter((key) => key === 'b').length, 1)
  await queue[Symbol.asyncDispose]()
})

void t.test('a failed key is retried, and a key that requests it is requeued', async (t) => {
  const tries: string[] = []
  const done = Promise.withResolvers<void>()
  using _staying = keepProcessAlive()
  const queue = new WorkQueue({
    workers: 1,
    firstWaitMs: 1,
    act: async (key) => {
      tries.push(key)
      if (tries.length < 3) throw new Error('not yet')
      if (tries.length === 3) return 1
      done.resolve()
      return undefined
    },
    onFailure: () => undefined,
  })
  queue.add('a')
  await done.promise
  t.equal(tries.length, 4)
  await queue[Symbol.asyncDispose]()
})
