import t from 'tap'
import type { ApiObject } from '../../../../src/api/kube/object.ts'
import {
  bookmark,
  changed,
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { count, database, referencedBodies, open, pods, refusing, faults } from './opened.ts'

t.beforeEach(() => faults.splice(0))

void t.test('a body is stored once for all who hold it, and no longer than that', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    using db = database(directory)
    const other = collection({ labelSelector: 'app=x' })
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
    await replace(store, other, head(5), [object('a', 1)])
    await store.put(keyOf('a'), pod, object('a', 1))
    t.equal(count(db, 'body'), 2)
    await store.apply(collection(), [changed('MODIFIED', object('a', 6))])
    await store.apply(other, [changed('MODIFIED', object('a', 6))])
    t.equal(count(db, referencedBodies), 3, 'what was before is kept for those who are behind')
    await replace(store, collection(), head(9))
    t.equal(count(db, referencedBodies), 2)
    await replace(store, other, head(9))
    t.equal(count(db, referencedBodies), 0)
  }
  using db = database(directory)
  t.equal(count(db, 'body'), 0)
})

void t.test('bodies that a crash left unreferenced go with the next start', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    await replace(store, collection(), head(9), pods(5, 1).slice(3))
    await store.put(keyOf('s'), pod, object('s', 11))
  }
  {
    using db = database(directory)
    db.exec('UPDATE body SET id = id + 10')
    for (const table of ['member', 'single']) db.exec(`UPDATE ${table} SET body = body + 10`)
    const leave = db.prepare("INSERT INTO body (id, checksum, bytes) VALUES (?, 0, x'00')")
    for (const id of [1, 10, 40]) leave.run(id)
  }
  await using store = await open(directory)
  using db = database(directory)
  t.equal(count(db, 'body'), 3)
  t.equal(listed(store, collection())?.length, 2)
  t.equal(got(store, keyOf('s')), 's at 11')
})

void t.test('one version in the encodings of two API servers is two bodies', async (t) => {
  await using store = await open(t.testdir())
  const longer = object('a', 1, { bytes: Buffer.from('a at 1, and a field of a later release') })
  await replace(store, collection(), head(5), [object('a', 1)])
  await store.put(keyOf('a'), pod, longer)
  await replace(store, collection({ labelSelector: 'app' }), head(5), [longer])
  t.strictSame(listed(store, collection()), ['a at 1'])
  t.strictSame(listed(store, collection({ labelSelector: 'app' })), [String(longer.bytes)])
  t.type(got(store, keyOf('a')), 'string')
  t.strictSame(faults, [])
})

void t.test('the body of one object is never given out for another', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  using db = database(directory)
  db.exec(`UPDATE body SET (checksum, bytes) =
      (SELECT checksum, bytes FROM body JOIN member ON id = body WHERE name = 'a')
    WHERE id = (SELECT body FROM member WHERE name = 'b')`)
  t.strictSame(listed(store, collection()), ['a at 1'])
  t.equal(store.get(keyOf('b')), undefined)
})

void t.test('one body serves all lists that bring it at the same time', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  const keys = ['a', 'b', 'c'].map((app) => collection({ labelSelector: `app=${app}` }))
  const lists = keys.map((key) => store.replace(key))
  for (const list of lists) await list.add({ objects: [object('a', 1), object('b', 2)] })
  await store.put(keyOf('x'), pod, object('x', 1))
  t.equal(count(db, 'body'), 3)
  await lists[0]![Symbol.asyncDispose]()
  for (const list of lists.slice(1)) await list.commit(head(5))
  for (const key of keys.slice(1)) t.strictSame(listed(store, key), ['a at 1', 'b at 2'])
  await replace(store, keys[1]!, head(6))
  await store.put(keyOf('y'), pod, object('y', 7))
  t.strictSame(listed(store, keys[2]!), ['a at 1', 'b at 2'])
})

void t.test('an unreferenced row is used again, or given back', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(2000), pods(1000, 1, 600))
  const rows = count(db, 'body')
  for (const [index, version] of Array.from({ length: 100 }, (_, i) => [i, 3000 + i] as const)) {
    const bytes = Buffer.alloc(600 + (index % 2))
    await store.put(keyOf('own'), pod, object('own', version, { bytes }))
  }
  t.ok(count(db, 'body') <= rows + 4, `${count(db, 'body')} rows for ${rows} pods`)
  await replace(store, collection(), head(5000))
  for (let write = 0; write < 8; write += 1)
    await store.apply(collection(), [bookmark(5001 + write)])
  t.ok(count(db, 'body') <= 140, `${count(db, 'body')} rows for none`)
})

void t.test('rows of a displaced list, and of events late for it, are used again', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(1))
  for (let version = 1_000; version < 31_000; version += 1_000) {
    await using list = store.replace(collection())
    await list.add({ objects: pods(20, version, 600) })
    const late = pods(5, version + 100, 600)
    await store.apply(
      collection(),
      late.map((pod) => changed('MODIFIED', pod)),
    )
    await list.commit(head(version + 50))
    t.strictSame(
      [...store.list(collection())!.batches].flat().map(({ resourceVersion: at }) => Number(at)),
      pods(20, version).map(({ resourceVersion: at }, i) => (i < 5 ? 100 : 0) + Number(at)),
    )
  }
  t.ok(count(db, 'body') <= 100, `${count(db, 'body')} rows for 20 pods`)
})

void t.test('a list being read is not disturbed by rows used again', async (t) => {
  await using store = await open(t.testdir())
  const at = (version: number): ApiObject[] => pods(60, version, 30_000)
  await replace(store, collection(), head(199), at(100))
  const batches = store.list(collection())!.batches[Symbol.iterator]()
  const read = [...(batches.next().value as readonly ApiObject[])]
  for (let version = 200; version < 1000; version += 100) {
    await store.apply(
      collection(),
      at(version).map((pod) => changed('MODIFIED', pod)),
    )
  }
  for (let next = batches.next(); !next.done; next = batches.next()) read.push(...next.value)
  t.equal(read.length, 60)
  t.strictSame(new Set(read.map(({ bytes }) => bytes[0])), new Set([0x31]))
  t.strictSame(faults, [])
})

void t.test('a refused write leaks no reusable row', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await store.put(keyOf('own'), pod, object('own', 1))
  using _ = refusing(db, 'poison')
  for (let version = 2; version < 40; version += 1) {
    await store.put(keyOf('own'), pod, object('own', version))
    await t.rejects(store.put(keyOf('poison'), pod, object('poison', 1)))
  }
  t.ok(count(db, 'body') <= 4, `${count(db, 'body')} rows for one`)
})

void t.test('a refused write leaves reused rows as they were', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  for (const version of [6, 7, 8]) {
    await store.apply(collection(), [changed('MODIFIED', object('a', version))])
  }
  {
    using _ = refusing(db, 'poison')
    await t.rejects(store.put(keyOf('poison'), pod, object('poison', 9)))
    await store.put(keyOf('s'), pod, object('s', 11))
    // Both in one commit, which fails, and then each by itself.
    const [taken] = await Promise.allSettled([
      store.put(keyOf('s'), pod, object('s', 12)),
      store.put(keyOf('poison'), pod, object('poison', 9)),
    ])
    t.equal(taken.status, 'fulfilled')
  }
  for (const name of ['p', 'q', 'r']) await store.put(keyOf(name), pod, object(name, 10))
  t.strictSame(listed(store, collection()), ['a at 8'])
  for (const name of ['p', 'q', 'r']) t.equal(got(store, keyOf(name)), `${name} at 10`)
  t.equal(got(store, keyOf('s')), 's at 12')
  t.equal(count(db, referencedBodies), 5 + 3, 'with those before a at 8')
})
