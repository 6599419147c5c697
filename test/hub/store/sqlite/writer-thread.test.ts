import t from 'tap'
import { once } from 'node:events'
import type { ApiObject } from '../../../../src/api/kube/object.ts'
import type { ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  changed,
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
  texts,
} from '../../../contracts/object-store.ts'
import { open, pods, faults, turn, writersOf } from './opened.ts'
import { until } from '../../../kit/until.ts'

t.beforeEach(() => faults.splice(0))

/** Resolves when writes are taken again. */
async function writable(store: ObjectStore): Promise<void> {
  for (let taken = false; !taken;) {
    taken = await store.put(keyOf('trial'), pod, object('trial', '')).then(
      () => true,
      () => false,
    )
    await turn()
  }
}

void t.test('a writer that ends is started again, and what it missed is unfit', async (t) => {
  const writers = writersOf(t)
  await using store = await open(t.testdir())
  const other = collection({ labelSelector: 'app=x' })
  const staged = collection({ labelSelector: 'app=y' })
  for (const key of [collection(), other, staged]) {
    await replace(store, key, head(5), [object('a', 1)])
  }
  const incoming = store.replace(staged)
  await incoming.add({ objects: [object('a', 1), object('b', 6)] })
  // What was staged before it is written now.
  await store.put(keyOf('single'), pod, object('single', 9))
  const reading = store.list(other)!.batches

  const lost = store.apply(collection(), [changed('MODIFIED', object('a', 6))])
  const ended = writers[0]!.terminate()
  await t.rejects(lost, { code: 'STORE_FAILURE' })
  await ended
  t.equal(store.list(collection()), undefined)
  t.strictSame(listed(store, other), ['a at 1'], 'reads go on')
  t.equal(got(store, keyOf('single')), 'single at 9')
  await t.rejects(store.put(keyOf('z'), pod, object('z', 1)), { code: 'STORE_FAILURE' })
  t.ok(faults.includes('writer'))

  await writable(store)
  t.equal(writers.length, 2)
  t.throws(() => [...reading], { code: 'STORE_FAILURE' }, 'it may lack what was dropped')
  await t.rejects(incoming.commit(head(7)), { code: 'STORE_FAILURE' }, 'what was staged is lost')
  t.strictSame(listed(store, staged), ['a at 1'], 'and the list before it stands')
  t.strictSame(texts(await store.apply(other, [changed('MODIFIED', object('a', 8))])), ['a at 1'])
  t.equal(store.list(collection()), undefined, 'still')
  await replace(store, collection(), head(9), [object('a', 8)])
  t.strictSame(listed(store, collection()), ['a at 8'])
})

void t.test('that a write was lost with the writer is known after a restart too', async (t) => {
  const directory = t.testdir()
  const writers = writersOf(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1)])
    const lost = store.apply(collection(), [changed('MODIFIED', object('a', 6))])
    void writers[0]!.terminate()
    await t.rejects(lost)
    await until('a second writer', () => writers.length >= 2)
    await once(writers[1]!, 'message')
    await turn()
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
})

void t.test('a store whose writer has ended closes', async (t) => {
  const directory = t.testdir()
  const writers = writersOf(t)
  for (const started of [1, 2]) {
    writers.splice(0)
    const store = await open(directory)
    await writers[0]!.terminate()
    await t.rejects(store.put(keyOf('z'), pod, object('z', 1)))
    await until(`${started} writers`, () => writers.length >= started)
    await store[Symbol.asyncDispose]()
    t.equal(writers.length, started)
    for (const { threadId } of writers) t.equal(threadId, -1)
  }
  await using _ = await open(directory)
})

void t.test('lists read while writers change are whole', async (t) => {
  const writers = writersOf(t)
  await using store = await open(t.testdir())
  await replace(store, collection(), head(200), pods(60, 1, 30_000))
  for (let group = 0; group < 5; group += 1)
    await store.put(keyOf('x'), pod, object('x', 900 + group))
  await writers[0]!.terminate()
  await until('a second writer', () => writers.length >= 2)
  const batches = store.list(collection())!.batches[Symbol.iterator]()
  await writable(store)
  const first = batches.next().value as readonly ApiObject[]
  for (const version of [300, 400, 500]) {
    await replace(store, collection(), head(version + 99), pods(60, version, 30_000))
  }
  for (let group = 0; group < 5; group += 1) {
    await store.put(keyOf('x'), pod, object('x', 1000 + group))
  }
  const read = [...first]
  for (let next = batches.next(); !next.done; next = batches.next()) read.push(...next.value)
  t.equal(read.length, 60)
  t.strictSame(new Set(read.map(({ bytes }) => bytes[0])), new Set([0x31]))
})
