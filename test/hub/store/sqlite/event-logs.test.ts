import t, { type Test } from 'tap'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import type { ObjectStore, StoredChanges } from '../../../../src/hub/store/store.ts'
import {
  bookmark,
  changed,
  collection,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
  eventsAfter,
  got,
} from '../../../contracts/object-store.ts'
import { count, database, referencedBodies, open, pods, refusing, faults } from './opened.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

t.beforeEach(() => faults.splice(0))

const secrets = collection({ gvr: { group: '', version: 'v1', resource: 'secrets' } })

/** A clock that stands still until the test moves it. */
function frozenClock(t: Test): (ms: number) => void {
  let now = Date.now()
  mock.method(Date, 'now', () => now)
  t.teardown(() => mock.restoreAll())
  return (ms) => (now += ms)
}

/** Changes one object at each version from `from` up to before `to`. */
async function change(
  store: ObjectStore,
  from: number,
  to: number,
  bytes?: Buffer<ArrayBuffer>,
): Promise<void> {
  const events = Array.from({ length: to - from }, (_, at) =>
    changed('MODIFIED', object('a', from + at, bytes && { bytes })),
  )
  // As a watch brings them: some together.
  for (let at = 0; at < events.length; at += 10)
    await store.apply(collection(), events.slice(at, at + 10))
}

const lengthSince = (store: ObjectStore, since: number): number | string | undefined => {
  const changes = store.changes(collection(), String(since))
  return typeof changes === 'object' ? [...changes.batches].flat().length : changes
}

void t.test('events of the last 75 seconds are kept, and a hundred of any age', async (t) => {
  const pass = frozenClock(t)
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(999), [object('a', 1)])
  await change(store, 1000, 1500)
  t.equal(lengthSince(store, 999), 500, 'it grows')
  pass(74_000)
  await change(store, 1500, 1600)
  t.equal(lengthSince(store, 999), 600)
  pass(2_000)
  await change(store, 1600, 1640)
  t.equal(lengthSince(store, 1498), 'expired', 'it shrinks')
  t.equal(lengthSince(store, 1499), 140)
  pass(100_000)
  await change(store, 1640, 1680)
  t.equal(lengthSince(store, 1499), 'expired')
  const kept = count(db, 'told')
  t.ok(kept >= 100 && kept <= 132, `${kept} events`)
  t.equal(lengthSince(store, 1679 - kept), kept)
  const left = count(db, 'body') - count(db, referencedBodies)
  t.ok(left <= 160, `${left} rows for what comes next`)
})

void t.test('no event log has more than two thousand events', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(999), [object('a', 1)])
  await change(store, 1000, 3500)
  const kept = count(db, 'told')
  t.ok(kept > 1900 && kept <= 2000, `${kept} events`)
  t.equal(lengthSince(store, 3499 - kept), kept)
  t.equal(lengthSince(store, 3498 - kept), 'expired')
})

void t.test('no event log has more than a megabyte', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(999), [object('a', 1)])
  await change(store, 1000, 1100, Buffer.alloc(30_000))
  const bytes = (): number => Number(db.prepare('SELECT sum(size) AS n FROM told').get()?.['n'])
  t.ok(bytes() > 8e5 && bytes() <= 1 << 20, `${bytes()} bytes`)
  t.equal(lengthSince(store, 1098), 1)
  await store.apply(collection(), [
    changed('MODIFIED', object('a', 1100, { bytes: Buffer.alloc(2 << 20) })),
  ])
  t.equal(count(db, 'told'), 0, 'what is larger is in none')
  t.equal(lengthSince(store, 1099), 'expired')
  t.equal(lengthSince(store, 1100), 0)
})

void t.test('gaps go with the events before them', async (t) => {
  const pass = frozenClock(t)
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(100), [object('a', 1)])
  await replace(store, collection(), head(110), [object('a', 1)])
  t.equal(count(db, "collection WHERE ring_gaps <> '[]'"), 1)
  pass(100_000)
  await change(store, 200, 340)
  pass(100_000)
  await change(store, 340, 480)
  t.equal(count(db, "collection WHERE ring_gaps <> '[]'"), 0)
  t.equal(lengthSince(store, 470), 9)
})

void t.test('an event log outlasts a restart, bodies and all', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
    await store.apply(collection(), [
      changed('MODIFIED', object('a', 6)),
      changed('DELETED', object('b', 7)),
    ])
    await replace(store, collection(), head(9), [object('a', 6)])
  }
  await using store = await open(directory)
  using db = database(directory)
  t.equal(count(db, 'body'), 4)
  t.strictSame(eventsAfter(store, collection(), 5), [
    'MODIFIED a at 6 after a at 1',
    'DELETED b at 7 after b at 2',
  ])
  t.equal(eventsAfter(store, collection(), 8), 'expired')
  await store.apply(collection(), [changed('MODIFIED', object('a', 10))])
  t.strictSame(eventsAfter(store, collection(), 6), [
    'DELETED b at 7 after b at 2',
    'MODIFIED a at 10 after a at 6',
  ])
  await replace(store, collection(), head(11))
  t.equal(count(db, referencedBodies), 0)
})

void t.test(
  'an object that leaves a selection ends there as it was, and has other bytes elsewhere',
  async (t) => {
    const directory = t.testdir({ first: {}, last: {} })
    const selected = collection({ labelSelector: 'app' })
    const labelled = (version: number) => object('a', version, { bytes: Buffer.from('labelled') })
    const bare = object('a', 6, { bytes: Buffer.from('bare') })
    for (const leaves of ['first', 'last']) {
      await using store = await open(join(directory, leaves))
      for (const key of [collection(), selected]) await replace(store, key, head(5), [labelled(1)])
      const leave = () => store.apply(selected, [changed('DELETED', labelled(6))])
      if (leaves === 'first') await leave()
      await store.apply(collection(), [changed('MODIFIED', bare)])
      if (leaves === 'last') await leave()
      t.strictSame(eventsAfter(store, selected, 5), ['DELETED labelled after labelled'])
      t.strictSame(listed(store, collection()), ['bare'])
      t.equal(got(store, keyOf('a')), 'bare')
    }
    t.strictSame(faults, [])
  },
)

void t.test('an event log with a damaged body is not read', async (t) => {
  for (const [what, body] of [
    ['an event', "body FROM told WHERE version = '7'"],
    ['what was before', "previous_body FROM told WHERE version = '6'"],
  ] as const) {
    const directory = rootFolder(t)
    await using store = await open(directory)
    using db = database(directory)
    const [secret, of] = [object('s', 3), collection({ labelSelector: 'other=one' })]
    await replace(store, of, head(5), [secret])
    await store.apply(of, [changed('MODIFIED', object('s', 6))])
    await replace(store, collection(), head(5), [object('a', 1)])
    await change(store, 6, 9)
    db.exec(`UPDATE body SET bytes = x'00' WHERE id IN (SELECT ${body} AND name = 'a')`)
    t.equal(eventsAfter(store, collection(), 5), 'expired', what)
    await store.apply(collection(), [bookmark(10), changed('MODIFIED', object('a', 11))])
    t.equal(eventsAfter(store, collection(), 5), 'expired')
    t.strictSame(eventsAfter(store, collection(), 8), ['MODIFIED a at 11 after a at 8'])
    t.strictSame(eventsAfter(store, of, 5), ['MODIFIED s at 6 after s at 3'], 'others stay')
    t.strictSame(listed(store, collection()), ['a at 11'])
    t.match(faults, ['damaged'])
  }
})

void t.test('changes that cannot be read to their end are broken off', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  await change(store, 6, 16, Buffer.alloc(100_000))
  db.exec("UPDATE body SET bytes = x'00' WHERE id IN (SELECT body FROM told WHERE version = '12')")
  const { batches } = store.changes(collection(), '5') as StoredChanges
  let last = ''
  t.throws(
    () => {
      for (const events of batches) last = events.at(-1)?.object.resourceVersion ?? ''
    },
    { code: 'STORE_FAILURE' },
  )
  t.ok(Number(last) >= 6 && Number(last) < 12)
  await store.apply(collection(), [bookmark(17)])
  t.equal(eventsAfter(store, collection(), 5), 'expired', 'no watch is broken off by it again')
})

void t.test('after a failed write the event log restarts with the next list', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  await change(store, 6, 8)
  {
    using _ = refusing(db, 'poison')
    db.exec(`CREATE TRIGGER no_disown BEFORE UPDATE OF whole ON collection WHEN NEW.whole = 0
      BEGIN SELECT RAISE(ABORT, 'refused'); END`)
    const failing = store.apply(collection(), [changed('ADDED', object('poison', 8))])
    await t.rejects(failing, { code: 'STORE_FAILURE' })
  }
  t.equal(eventsAfter(store, collection(), 6), undefined)
  // It came and went unseen, so that the list is the one that is stored.
  await replace(store, collection(), head(10), [object('a', 7)])
  for (const since of [6, 7, 8]) t.equal(eventsAfter(store, collection(), since), 'expired')
  t.strictSame(eventsAfter(store, collection(), 10), [])
  t.equal(count(db, 'told'), 0)
})

void t.test('a collection that missed a write keeps no event log', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    await replace(store, collection(), head(5), [object('a', 1)])
    await change(store, 6, 8)
    using _ = refusing(db, 'poison')
    await t.rejects(store.apply(collection(), [changed('ADDED', object('poison', 8))]))
  }
  await using store = await open(directory)
  using db = database(directory)
  t.equal(eventsAfter(store, collection(), 6), undefined)
  t.equal(count(db, 'told'), 0)
  t.equal(count(db, 'body'), 1)
  await replace(store, collection(), head(10), [object('a', 7)])
  t.equal(eventsAfter(store, collection(), 7), 'expired')
})

void t.test('an event that is not taken leaves its event log as it was', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  await change(store, 6, 8)
  {
    using _ = refusing(db, 'poison')
    await Promise.allSettled([
      store.apply(collection(), [changed('MODIFIED', object('a', 8))]),
      store.put(keyOf('poison'), secretKind, object('poison', 9)),
    ])
  }
  t.strictSame(eventsAfter(store, collection(), 6), [
    'MODIFIED a at 7 after a at 6',
    'MODIFIED a at 8 after a at 7',
  ])
  await replace(store, collection(), head(10))
  t.equal(count(db, referencedBodies), 0, 'no reference is counted twice')
})

const secretKind = { group: '', version: 'v1', kind: 'Secret' }

void t.test('a deleted object is sealed where it was, and goes with its key', async (t) => {
  const directory = rootFolder(t)
  const plain = Buffer.from('the-password-of-the-plant')
  {
    await using store = await open(directory)
    await replace(store, secrets, head(5), [object('s', 1, { bytes: plain })])
    await store.apply(secrets, [changed('DELETED', object('s', 6, { bytes: plain }))])
    t.strictSame(eventsAfter(store, secrets, 5), [`DELETED ${plain} after ${plain}`])
    const folder = join(directory, 'cache')
    for (const name of readdirSync(folder))
      t.notOk(readFileSync(join(folder, name)).includes(plain), name)
  }
  await using store = await open(directory, { sealingKey: Buffer.alloc(32, 1) })
  using db = database(directory)
  t.equal(eventsAfter(store, secrets, 5), undefined)
  t.strictSame([count(db, 'told'), count(db, 'body')], [0, 0])
})

void t.test('an event of several watches is stored once', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  const other = collection({ labelSelector: 'app=x' })
  for (const key of [collection(), other]) await replace(store, key, head(500), pods(20, 1))
  for (let version = 501; version < 540; version += 1) {
    const event = changed('MODIFIED', object('pod-0000', version))
    for (const key of [collection(), other]) await store.apply(key, [event])
  }
  t.equal(count(db, 'told'), 78)
  t.equal(count(db, referencedBodies), 20 + 39)
})

void t.test('events that a log has removed stay removed, whatever else failed', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  {
    using _ = refusing(db, 'poison')
    for (let version = 6; version < 306; version += 1) {
      // Both in one commit, which fails, and then each by itself.
      await Promise.allSettled([
        store.apply(collection(), [changed('MODIFIED', object('a', version))]),
        store.put(keyOf('poison'), pod, object('poison', version)),
      ])
    }
  }
  t.strictSame(eventsAfter(store, collection(), 303), [
    'MODIFIED a at 304 after a at 303',
    'MODIFIED a at 305 after a at 304',
  ])
  await replace(store, collection(), head(400), [object('a', 399)])
  for (let version = 401; version < 406; version += 1) {
    await store.apply(collection(), [bookmark(version)])
  }
  t.ok(count(db, 'body') <= 130, `${count(db, 'body')} rows for one, and some to be used again`)
})
