import { getEventListeners } from 'node:events'
import t from 'tap'
import { follow, onAbort } from '../../src/base/abort.ts'

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

void t.test('nothing stays on a parent that was let go of', async (t) => {
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
  'what is to be done on an abort is done once, and at once where it has happened',
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
