import { getEventListeners, once } from 'node:events'
import t from 'tap'
import { follow, LightAbort, onAbort } from '../../src/base/abort.ts'

void t.test('a child aborts with its parent, for the same reason', async (t) => {
  const parent = new AbortController()
  const child = new AbortController()
  follow(parent.signal, child)
  parent.abort('over')
  t.equal(child.signal.aborted, true)
  t.equal(child.signal.reason, 'over')
})

void t.test('a parent that has aborted already aborts a child at once', async (t) => {
  const child = new AbortController()
  follow(AbortSignal.abort('before'), child)
  t.equal(child.signal.reason, 'before')
})

void t.test('a child that aborts leaves its parent alone', async (t) => {
  const parent = new AbortController()
  const child = new AbortController()
  follow(parent.signal, child)
  child.abort()
  t.equal(parent.signal.aborted, false)
})

void t.test('disposed links leave no listener on a parent', async (t) => {
  const parent = new AbortController()
  const child = new AbortController()
  const link = follow(parent.signal, child)
  const other = onAbort(parent.signal, () => t.fail('called after it was let go of'))
  t.equal(getEventListeners(parent.signal, 'abort').length, 2)
  link[Symbol.dispose]()
  other[Symbol.dispose]()
  t.equal(getEventListeners(parent.signal, 'abort').length, 0)
  parent.abort()
  t.equal(child.signal.aborted, false)
})

void t.test(
  'an abort listener runs once, and at once if the signal has already aborted',
  async (t) => {
    let calls = 0
    const controller = new AbortController()
    onAbort(controller.signal, () => calls++)
    controller.abort()
    controller.abort()
    t.equal(calls, 1)
    onAbort(controller.signal, () => calls++)
    t.equal(calls, 2)
  },
)

void t.test('LightAbort notifies listeners like an AbortController', async (t) => {
  const light = new LightAbort()
  const { signal } = light
  const told: string[] = []
  onAbort(signal, () => told.push('first'))
  const second = onAbort(signal, () => told.push('second'))
  onAbort(signal, () => second[Symbol.dispose]())
  onAbort(signal, () => told.push('third'))[Symbol.dispose]()
  const child = new AbortController()
  follow(signal, child)
  signal.throwIfAborted()
  t.equal(signal.aborted, false)
  light.abort('over')
  light.abort('again')
  t.strictSame(told, ['first', 'second'])
  t.equal(signal.aborted, true)
  t.equal(signal.reason, 'over')
  t.equal(child.signal.reason, 'over')
  t.throws(() => signal.throwIfAborted(), 'over')
  onAbort(signal, () => told.push('late'))
  t.equal(told.at(-1), 'late')
})

void t.test('a listener that throws stops no other listener', async (t) => {
  const light = new LightAbort()
  const failed = once(process, 'uncaughtException')
  let done = false
  onAbort(light.signal, () => {
    throw new Error('an act failed')
  })
  onAbort(light.signal, () => {
    done = true
  })
  const guards = process.listeners('uncaughtException').slice(0, -1)
  for (const guard of guards) process.off('uncaughtException', guard)
  light.abort('over')
  const [cause] = (await failed) as [Error]
  for (const guard of guards) process.on('uncaughtException', guard)
  t.equal(cause.message, 'an act failed')
  t.equal(done, true)
})
