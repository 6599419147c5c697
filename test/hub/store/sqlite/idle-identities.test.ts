import t from 'tap'
import {
  nodeIdentity,
  unprovenIdentity,
  serviceAccount,
  tokenHolder,
  type Identity,
} from '../../../../src/api/request/identity.ts'
import type { CollectionKey, ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  bookmark,
  collection,
  head,
  json,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { count, database, dataVersion, open, pods, faults, turn, writersOf } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const ofToken = (hash: string): CollectionKey =>
  collection({ partition: { identity: tokenHolder(hash), representation: json } })

/** A list, a record and a document for the token. */
async function keepFor(store: ObjectStore, hash: string, members = 1): Promise<void> {
  const { partition } = ofToken(hash)
  await replace(store, ofToken(hash), head(5000), pods(members, 1))
  await store.put(keyOf('own', { partition }), pod, object('own', 6000))
  const key = { identity: partition.identity, path: '/api', representation: '' }
  await store.putDocument(key, { mediaType: 'text/plain', body: Buffer.from('api') })
}

const tables = ['scope', 'collection', 'member', 'single', 'document', 'audience']

void t.test('records of an unused token go after thirty days of running', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  await store.putDocument(
    { identity: nodeIdentity, path: '/api', representation: '' },
    { mediaType: 'text/plain', body: Buffer.from('api') },
  )
  await keepFor(store, 'used')
  await store.sweep(1)
  const before = tables.map((table) => count(db, table))
  await keepFor(store, 'rotated')
  for (let day = 2; day <= 30; day += 1) {
    await store.sweep(day)
    await store.sweep(day)
    store.get(keyOf('any', { partition: ofToken('used').partition }))
  }
  await store.sweep(20_000)
  t.equal(count(db, "audience WHERE identity = 'token:rotated'"), 1, 'a day counts once')
  await store.sweep(20_001)
  t.strictSame(
    tables.map((table) => count(db, table)),
    before,
  )
  t.equal(store.list(ofToken('rotated')), undefined)
  t.equal(store.get(keyOf('own', { partition: ofToken('rotated').partition })), undefined)
  t.strictSame(listed(store, ofToken('used')), ['1'.repeat(100)])
  t.strictSame(listed(store, collection()), ['a at 1'])
})

void t.test('a clock that was ahead once does not stop the count of days', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await keepFor(store, 'rotated')
  const [ahead, right] = [60_000, 20_800]
  await store.sweep(ahead)
  await store.sweep(right)
  for (let day = 1; day < 30; day += 1) {
    // A node without a battery starts in 1970, and that counts for nothing.
    await store.sweep(0)
    await store.sweep(right + day)
  }
  t.equal(count(db, 'audience'), 1)
  await store.sweep(right + 30)
  t.equal(count(db, 'audience'), 0)
})

void t.test('a token that was forgotten begins anew', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  await keepFor(store, 'back', 20)
  await using incoming = store.replace(ofToken('back'))
  await incoming.add({ objects: pods(20, 1) })
  for (let day = 1; day <= 31; day += 1) await store.sweep(day)
  await t.rejects(incoming.commit(head(5001)), { code: 'STORE_FAILURE' })
  t.equal(store.list(ofToken('back')), undefined)
  t.strictSame(await store.apply(ofToken('back'), [bookmark(5002)]), [undefined])
  t.equal(store.list(ofToken('back')), undefined)
  await keepFor(store, 'other', 3)
  await keepFor(store, 'back', 20)
  t.equal(listed(store, ofToken('back'))?.length, 20)
  t.equal(listed(store, ofToken('other'))?.length, 3)
})

void t.test(
  'unused service accounts and unproven callers are forgotten, too; the node is not',
  async (t) => {
    await using store = await open(t.testdir())
    const reader = serviceAccount({ namespace: 'a', name: 'reader', uid: '1' })
    const writer = serviceAccount({ namespace: 'a', name: 'writer', uid: '2' })
    const of = (identity: Identity): CollectionKey =>
      collection({ partition: { identity, representation: json } })
    for (const identity of [reader, writer, unprovenIdentity, nodeIdentity])
      await replace(store, of(identity), head(5), [object('a', 1)])
    for (let day = 1; day <= 31; day += 1) {
      store.list(of(reader))
      await store.sweep(day)
    }
    t.ok(store.list(of(reader)), 'it was used each day')
    t.ok(store.list(of(nodeIdentity)))
    for (const identity of [writer, unprovenIdentity]) t.notOk(store.list(of(identity)), identity)
  },
)

void t.test('forgetting a token takes a step at a time, and ends when it is used', async (t) => {
  const writers = writersOf(t)
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await keepFor(store, 'large', 1200)
  for (let day = 1; day <= 30; day += 1) await store.sweep(day)
  let begun = false
  writers[0]!.on('message', () => {
    if (begun || count(db, 'member') === 1200) return
    begun = true
    t.equal(count(db, 'collection WHERE whole = 1'), 0, 'what is left is no list')
    t.equal(store.list(ofToken('large')), undefined)
  })
  await store.sweep(31)
  t.equal(count(db, 'member'), 700)
  t.equal(count(db, 'audience WHERE idle_days = 0'), 1)
  await keepFor(store, 'large', 1200)
  t.equal(listed(store, ofToken('large'))?.length, 1200)
})

void t.test('a token’s use is written once a day, and only where it is known', async (t) => {
  const writers = writersOf(t)
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await keepFor(store, 'x')
  await store.sweep(1)
  await store.sweep(2)
  const before = dataVersion(db)
  store.list(ofToken('unknown'))
  await store.forget(keyOf('a'))
  t.strictSame(dataVersion(db), before)
  store.list(ofToken('x'))
  await store.forget(keyOf('a'))
  const noted = dataVersion(db)
  t.notSame(noted, before)
  t.equal(count(db, 'audience WHERE idle_days = 0'), 1)
  let groups = 0
  writers[0]!.on('message', () => (groups += 1))
  store.list(ofToken('x'))
  await turn()
  await store.forget(keyOf('a'))
  t.equal(groups, 1)
  t.strictSame(dataVersion(db), noted)
})
