import t from 'tap'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { mock } from 'node:test'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import type { ObjectStore } from '../../../src/hub/store/store.ts'
import {
  bookmark,
  changed,
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  objectStoreContract,
  pod,
  replace,
  texts,
  eventsAfter,
} from '../../contracts/object-store.ts'
import {
  count,
  crasher,
  database,
  dataVersion,
  fileOf,
  referencedBodies,
  open,
  pods,
  refusing,
  faults,
} from './sqlite/opened.ts'
import { rootFolder } from '../../kit/root-folder.ts'

t.beforeEach(() => faults.splice(0))

void t.test('keeps the contract', async (t) => objectStoreContract(t, open))

void t.test('files are closed to others, whatever the umask', async (t) => {
  const directory = rootFolder(t)
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  await using store = await open(directory)
  await replace(store, collection(), head(1), [object('a', 1)])
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)
  t.equal(mode(join(directory, 'cache')), '700')
  t.strictSame(readdirSync(join(directory, 'cache')).sort(), [
    'lock.db',
    'objects.db',
    'objects.db-shm',
    'objects.db-wal',
  ])
  for (const name of readdirSync(join(directory, 'cache'))) {
    t.equal(mode(join(directory, 'cache', name)), '600', name)
  }
  t.equal(mode(join(directory, 'store.key')), '600')
})

void t.test('files that were open to others are closed', async (t) => {
  const directory = t.testdir({ cache: { 'objects.db': '' }, 'store.key': Buffer.alloc(32) })
  for (const name of ['cache', 'cache/objects.db', 'store.key']) {
    chmodSync(join(directory, name), 0o777)
  }
  await using _ = await open(directory)
  for (const name of ['cache', 'cache/objects.db', 'cache/objects.db-wal', 'store.key']) {
    t.equal(statSync(join(directory, name)).mode & 0o077, 0, name)
  }
})

void t.test('after the clock was set back the next list corrects its time', async (t) => {
  await using store = await open(rootFolder(t))
  let time = Date.parse('2100-01-01')
  const clock = mock.method(Date, 'now', () => time)
  t.teardown(() => clock.mock.restore())
  await replace(store, collection(), head(5), [object('a', 4)])
  await store.put(keyOf('a'), pod, object('a', 4))
  const toldAt = (): unknown[] => {
    const found = store.get(keyOf('a'))
    return [store.list(collection())!, typeof found === 'object' && found].map(
      (told) => told && told.confirmedAt,
    )
  }
  t.strictSame(toldAt(), [time, time])
  time = Date.parse('2026-01-01')
  await store.apply(collection(), [bookmark(6)])
  t.strictSame(toldAt(), [time, time])
  time += 60_000
  await replace(store, collection(), head(6), [object('a', 4)])
  t.equal(toldAt()[0], time)
})

void t.test('the confirmation of an unchanged list outlives a restart', async (t) => {
  const directory = rootFolder(t)
  let time = Date.parse('2026-01-01')
  const clock = mock.method(Date, 'now', () => time)
  t.teardown(() => clock.mock.restore())
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 3)])
    await store.apply(collection(), [changed('MODIFIED', object('a', 6))])
    for (let minutes = 0; minutes < 60; minutes += 1) {
      time += 60_000
      await replace(store, collection(), head(6), [object('a', 6)])
    }
    t.equal(store.list(collection())!.confirmedAt, time)
    t.strictSame(eventsAfter(store, collection(), 5), ['MODIFIED a at 6 after a at 3'])
  }
  await using store = await open(directory)
  const { confirmedAt } = store.list(collection())!
  t.ok(confirmedAt > time - 15 * 60_000, new Date(confirmedAt).toISOString())
})

void t.test(
  'bookmarks at the version of a collection confirm it, and seldom cost a write',
  async (t) => {
    const directory = rootFolder(t)
    let time = Date.parse('2026-01-01')
    const clock = mock.method(Date, 'now', () => time)
    t.teardown(() => clock.mock.restore())
    const commits: number[] = []
    {
      await using store = await open(directory, {
        onCommitted: (bytes) => void commits.push(bytes),
      })
      await replace(store, collection(), head(6), [object('a', 6)])
      const before = commits.length
      for (let minutes = 0; minutes < 60; minutes += 1) {
        time += 60_000
        await store.apply(collection(), [bookmark(6)], { since: '6' })
      }
      t.equal(store.list(collection())!.confirmedAt, time)
      const written = commits.length - before
      t.ok(written >= 5 && written <= 7, `${written} commits in an hour`)
    }
    await using store = await open(directory)
    t.ok(store.list(collection())!.confirmedAt > time - 15 * 60_000)
  },
)

void t.test('only events up to the version of a collection or newer confirm it', async (t) => {
  await using store = await open(rootFolder(t))
  let time = Date.parse('2026-01-01')
  const clock = mock.method(Date, 'now', () => time)
  t.teardown(() => clock.mock.restore())
  await replace(store, collection(), head(10), [object('a', 10)])
  const listedAt = time
  const confirmedAfter = async (since: string, ...events: WatchEvent[]): Promise<unknown> => {
    time += 60_000
    await store.apply(collection(), events, { since })
    return store.confirmedAt(collection())
  }
  const [older, newer] = [changed('MODIFIED', object('a', 9)), changed('MODIFIED', object('a', 13))]
  t.equal(await confirmedAfter('5', older, bookmark(9)), listedAt, 'of a slower watch')
  t.equal(await confirmedAfter('5', bookmark(9)), listedAt)
  t.equal(await confirmedAfter('12', newer), listedAt, 'of a watch that begins later')
  t.equal(await confirmedAfter('10', newer), time)
  t.equal(await confirmedAfter('5', older, newer), time)
})

void t.test('the same list again costs no write, a newer version of it one row', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(200), pods(100, 1))
  const before = dataVersion(db)
  const confirmedAt = store.list(collection())!.confirmedAt
  await replace(store, collection(), head(200), pods(100, 1))
  t.strictSame(dataVersion(db), before)
  t.ok(store.list(collection())!.confirmedAt >= confirmedAt)

  db.exec(`CREATE TABLE touched (what TEXT);
    CREATE TRIGGER o AFTER INSERT ON body BEGIN INSERT INTO touched VALUES ('body'); END;
    CREATE TRIGGER m AFTER INSERT ON member BEGIN INSERT INTO touched VALUES ('member'); END;
    CREATE TRIGGER u AFTER UPDATE ON body BEGIN INSERT INTO touched VALUES ('body'); END;
    CREATE TRIGGER r AFTER UPDATE ON member BEGIN INSERT INTO touched VALUES ('member'); END;
    CREATE TRIGGER s AFTER INSERT ON staged BEGIN INSERT INTO touched VALUES ('staged'); END`)
  await replace(store, collection(), head(201), pods(100, 1))
  t.equal(store.list(collection())?.resourceVersion, '201')
  t.equal(count(db, 'touched'), 0)
})

void t.test('a list that confirms events is written once, to outlive a power cut', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(1), [object('a', 1)])
  await store.apply(collection(), [changed('MODIFIED', object('a', 2))])
  const loose = dataVersion(db)
  await replace(store, collection(), head(2), [object('a', 2)])
  const kept = dataVersion(db)
  t.notSame(kept, loose, 'a power cut would take the event, and with it what the list said')
  await replace(store, collection(), head(2), [object('a', 2)])
  t.strictSame(dataVersion(db), kept)
})

void t.test('an unchanged list costs no write after a restart either', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(200), pods(100, 1))
  }
  await using store = await open(directory)
  using db = database(directory)
  const before = dataVersion(db)
  await replace(store, collection(), head(200), pods(100, 1))
  t.strictSame(dataVersion(db), before)
})

void t.test('a deletion is recorded for as long as the object would be found', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    const other = collection({ labelSelector: 'app=x' })
    const before = dataVersion(db)
    await store.forget(keyOf('never'))
    t.strictSame(dataVersion(db), before, 'what is not known costs no write')
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
    await replace(store, other, head(5), [object('a', 1), object('b', 2)])
    const listed = dataVersion(db)
    await store.forget(keyOf('never'))
    t.strictSame(dataVersion(db), listed)
    for (const name of ['a', 'b']) await store.forget(keyOf(name))
    await store.put(keyOf('b'), pod, object('b', 2))
    t.equal(count(db, 'forgotten'), 2, 'so that its record counts, and no collection')
    await store.forget(keyOf('b'))
    await store.apply(collection(), [changed('DELETED', object('a', 6))])
    t.equal(count(db, 'forgotten'), 2)
    await store.apply(other, [changed('DELETED', object('a', 6))])
    t.equal(count(db, 'forgotten'), 1)
    await replace(store, collection(), head(7))
    await store.forget(keyOf('b'))
  }
  await using store = await open(directory)
  using db = database(directory)
  t.equal(store.get(keyOf('b')), 'absent', 'across a restart too')
  await replace(store, collection({ labelSelector: 'app=x' }), head(8))
  t.equal(count(db, 'forgotten'), 0)
})

void t.test('an abandoned list leaves nothing behind', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    {
      await using replacement = store.replace(collection())
      await replacement.add({ objects: pods(30, 1) })
    }
    await store.put(keyOf('a'), pod, object('a', 1))
    t.equal(count(db, 'staged'), 0)
  }
  using db = database(directory)
  t.equal(count(db, 'body'), 1)
})

const secrets = collection({ gvr: { group: '', version: 'v1', resource: 'secrets' } })
const secretKey = (name: string) => keyOf(name, { gvr: secrets.gvr })
const plain = 'cGFzc3dvcmQ6IGh1bnRlcjI='

void t.test('secrets and tokens are sealed in every file, and read back', async (t) => {
  const directory = rootFolder(t)
  const token = { group: '', version: 'v1', resource: 'serviceaccounts/token' }
  const bytes = Buffer.from(plain.repeat(400))
  await using store = await open(directory)
  await replace(store, secrets, head(5), [object('s', 1, { bytes })])
  await store.apply(secrets, [changed('MODIFIED', object('s', 6, { bytes }))])
  await store.put(keyOf('default', { gvr: token }), pod, object('default', 1, { bytes }))
  await store.put(keyOf('open'), pod, object('open', 1, { bytes: Buffer.from('in the clear') }))
  const files = readdirSync(join(directory, 'cache')).map((name) => join(directory, 'cache', name))
  t.ok(
    files.some((file) => readFileSync(file).includes('in the clear')),
    'the search finds',
  )
  for (const file of files) t.notOk(readFileSync(file).includes(plain), file)
  t.strictSame(listed(store, secrets), [bytes.toString()])
  t.equal(got(store, secretKey('s')), bytes.toString())
  t.equal(got(store, keyOf('default', { gvr: token })), bytes.toString())
  const previous = await store.apply(secrets, [changed('DELETED', object('s', 7))])
  t.strictSame(texts(previous), [bytes.toString()])
})

void t.test('with another key sealed objects are unknown, and the rest is served', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, secrets, head(5), [object('s', 1)])
    await store.put(secretKey('single'), pod, object('single', 1))
    await replace(store, collection(), head(5), [object('p', 1)])
  }
  await using store = await open(directory, { sealingKey: Buffer.alloc(32, 1) })
  t.equal(store.list(secrets), undefined)
  t.equal(store.get(secretKey('s')), undefined)
  t.equal(store.get(secretKey('single')), undefined)
  t.strictSame(listed(store, collection()), ['p at 1'])
  t.strictSame(faults, ['resealed'])
  await replace(store, secrets, head(6), [object('s', 1)])
  t.strictSame(listed(store, secrets), ['s at 1'])
})

void t.test('a sealed body moved to another row does not open', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  await replace(store, secrets, head(5), [object('a', 1), object('b', 2)])
  using db = database(directory)
  db.exec(
    "UPDATE body SET bytes = (SELECT bytes FROM body JOIN member ON id = body WHERE name = 'a') WHERE id = (SELECT body FROM member WHERE name = 'b')",
  )
  t.strictSame(listed(store, secrets), ['a at 1'])
  t.equal(store.get(secretKey('b')), undefined)
})

void t.test(
  'a damaged body is set apart, the others are served, the next list heals it',
  async (t) => {
    const directory = rootFolder(t)
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2), object('c', 3)])
    await store.put(keyOf('b'), pod, object('b', 2))
    using db = database(directory)
    db.exec("UPDATE body SET bytes = x'00' WHERE id IN (SELECT body FROM member WHERE name = 'b')")
    t.strictSame(listed(store, collection()), ['a at 1', 'c at 3'])
    t.equal(store.get(keyOf('b')), undefined, 'damaged is not absent')
    t.equal(store.get(keyOf('never')), undefined, 'nor does a list with a hole say what is absent')
    t.strictSame(faults, ['damaged'], 'reported once')
    await store.apply(collection(), [bookmark(6)])
    t.equal(count(db, 'body'), 2)
    await replace(store, collection(), head(6), [object('a', 1), object('b', 2), object('c', 3)])
    t.strictSame(listed(store, collection()), ['a at 1', 'b at 2', 'c at 3'])
    t.equal(store.get(keyOf('never')), 'absent')
  },
)

void t.test('a hole is remembered across a restart', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
    using db = database(directory)
    db.exec("UPDATE body SET bytes = x'00' WHERE id IN (SELECT body FROM member WHERE name = 'b')")
    t.equal(store.get(keyOf('b')), undefined)
  }
  await using store = await open(directory)
  t.equal(store.get(keyOf('b')), undefined)
  t.strictSame(listed(store, collection()), ['a at 1'])
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  t.strictSame(listed(store, collection()), ['a at 1', 'b at 2'])
})

void t.test('a file that is no database is set aside and a new one begun', async (t) => {
  const directory = t.testdir({ cache: { 'objects.db': 'no database'.repeat(1000) } })
  await using store = await open(directory)
  t.strictSame(faults, ['set-aside'])
  await replace(store, collection(), head(5), [object('a', 1)])
  t.strictSame(listed(store, collection()), ['a at 1'])
  const aside = readdirSync(join(directory, 'cache')).filter((name) => name.includes('unusable'))
  t.equal(aside.length, 1)
  t.match(readFileSync(join(directory, 'cache', aside[0]!), 'utf8'), /^no database/)
})

/** A store that was closed, with its database changed since. */
async function changedSince(directory: string, change: string): Promise<void> {
  faults.splice(0)
  await (await open(directory))[Symbol.asyncDispose]()
  using db = database(directory)
  db.exec(change)
}

void t.test('a database without our tables is set aside', async (t) => {
  const directory = rootFolder(t)
  await changedSince(directory, 'DROP TABLE member')
  await using store = await open(directory)
  t.strictSame(faults, ['set-aside'])
  t.equal(store.list(collection()), undefined)
})

void t.test('a database of a later release is refused, and left as it is', async (t) => {
  const directory = rootFolder(t)
  await changedSince(directory, 'PRAGMA user_version = 1000')
  const file = join(directory, 'cache', 'objects.db')
  for (const time of ['once', 'and again']) {
    await t.rejects(
      open(directory),
      { message: new RegExp(`^${file} was written by a later release: .*1000.*versions up to`) },
      time,
    )
  }
  t.strictSame(faults, [])
  using db = database(directory)
  t.equal(db.prepare('PRAGMA user_version').get()?.['user_version'], 1000)
})

void t.test('opening fails where nothing can be written', async (t) => {
  const directory = t.testdir({ cache: 'a file' })
  await t.rejects(open(directory), { code: 'STORE_FAILURE' })
})

void t.test('a write that fails changes nothing and leaves its collection unfit', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  const other = collection({ labelSelector: 'app=x' })
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  await replace(store, other, head(5), [object('a', 1)])
  {
    using _ = refusing(db, 'poison')
    const failing = store.apply(collection(), [
      changed('MODIFIED', object('a', 6)),
      changed('ADDED', object('poison', 7)),
    ])
    const following = store.apply(collection(), [changed('MODIFIED', object('b', 8))])
    const elsewhere = store.apply(other, [changed('ADDED', object('d', 8))])
    await t.rejects(failing, { code: 'STORE_FAILURE' })
    await t.rejects(following, { code: 'STORE_FAILURE' }, 'what builds on it fails too')
    await elsewhere
  }
  t.equal(store.list(collection()), undefined)
  t.equal(store.get(keyOf('never')), undefined, 'an unfit collection knows no absence')
  t.equal(store.get(keyOf('b')), undefined, 'nor what it held')
  t.strictSame(listed(store, other), ['a at 1', 'd at 8'], 'others go on')
  await store.apply(collection(), [changed('MODIFIED', object('a', 9))])
  t.equal(store.list(collection()), undefined, 'events do not make it fit again')
  await replace(store, collection(), head(10), [object('a', 9), object('b', 2)])
  t.strictSame(listed(store, collection()), ['a at 9', 'b at 2'])
  t.ok(faults.includes('write'))
})

void t.test('a list that cannot be staged is not committed in part', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  const poison = object('poison', 6)
  {
    using _ = refusing(db, 'poison')
    await t.rejects(
      replace(store, collection(), head(7), [object('a', 6)], [poison], [object('c', 7)]),
      {
        code: 'STORE_FAILURE',
      },
    )
  }
  t.equal(store.list(collection()), undefined)
  await replace(store, collection(), head(7), [object('a', 6), poison])
  t.strictSame(listed(store, collection()), ['a at 6', 'poison at 6'])
})

void t.test('a collection that missed a write is not served after a restart', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    await replace(store, collection(), head(5), [object('a', 1)])
    using _ = refusing(db, 'poison')
    await t.rejects(store.apply(collection(), [changed('ADDED', object('poison', 7))]))
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
  t.equal(store.get(keyOf('x')), undefined)
})

void t.test('a missed write is recorded as soon as the disk takes it', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    await replace(store, collection(), head(5), [object('a', 1)])
    {
      using _ = refusing(db, 'poison')
      db.exec(`CREATE TRIGGER all_refused BEFORE UPDATE ON collection
        BEGIN SELECT RAISE(ABORT, 'refused'); END`)
      await t.rejects(store.apply(collection(), [changed('ADDED', object('poison', 7))]))
      await store.put(keyOf('w'), pod, object('w', 8))
      t.equal(store.get(keyOf('a')), undefined, 'what cannot be written down is known')
      t.equal(store.get(keyOf('never')), undefined)
    }
    db.exec('DROP TRIGGER all_refused')
    await store.put(keyOf('x'), pod, object('x', 9))
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
  t.equal(got(store, keyOf('x')), 'x at 9')
})

/**
 * Resolves when all earlier writes are answered: with a write that is refused, as one that is taken
 * has missed writes recorded.
 */
async function answered(store: ObjectStore, db: DatabaseSync): Promise<void> {
  using _ = refusing(db, 'poison')
  await store.put(keyOf('poison'), pod, object('poison', 1)).catch(() => undefined)
}

/** Stores a collection, and refuses an event of it and the record that it was missed. */
async function missEvent(store: ObjectStore, db: DatabaseSync): Promise<void> {
  await replace(store, collection(), head(5), [object('a', 1)])
  db.exec(`CREATE TRIGGER all_refused BEFORE UPDATE ON collection
    BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  await store.apply(collection(), [changed('DELETED', object('a', 6))]).catch(() => undefined)
  await answered(store, db)
  db.exec('DROP TRIGGER all_refused')
}

void t.test('a missed write is recorded once a test write succeeds', async (t) => {
  using _waiting = keepProcessAlive()
  const directory = rootFolder(t)
  const recovered = Promise.withResolvers<void>()
  await using store = await open(directory, { onRecovered: recovered.resolve })
  using db = database(directory)
  await missEvent(store, db)
  await recovered.promise
  await answered(store, db)
  t.equal(db.prepare('SELECT whole FROM collection').get()?.['whole'], 0)
})

void t.test('a missed write is recorded when the store closes, if not before', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    await missEvent(store, db)
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
})

void t.test('a list that is sent before the record of a missed write stays whole', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    using db = database(directory)
    await missEvent(store, db)
    await using list = store.replace(collection())
    await list.add({ objects: [object('a', 6)] })
    await answered(store, db)
    const other = store.put(keyOf('x'), pod, object('x', 7))
    // It is being committed when the list arrives.
    await Promise.resolve()
    await Promise.all([other, list.commit(head(8))])
    await store.apply(collection(), [changed('MODIFIED', object('a', 9))], { since: '8' })
    t.strictSame(listed(store, collection()), ['a at 9'])
  }
  await using store = await open(directory)
  t.strictSame(listed(store, collection()), ['a at 9'])
})

void t.test('a full disk refuses writes, reads go on, and with room it goes on', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory, { maxBytes: 2 << 20 })
  const other = collection({ labelSelector: 'app=x' })
  await replace(store, collection(), head(200), pods(100, 1, 10_000))
  await t.rejects(replace(store, other, head(600), pods(100, 500, 20_000)), {
    code: 'STORE_FAILURE',
  })
  t.equal(listed(store, collection())?.length, 100)
  t.equal(store.list(other), undefined)
  await replace(store, collection(), head(700), pods(10, 600, 1000))
  await replace(store, other, head(800), pods(50, 700, 10_000))
  t.equal(listed(store, collection())?.length, 10)
  t.equal(listed(store, other)?.length, 50)
})

void t.test('a writer that brings more than the disk takes waits', async (t) => {
  await using store = await open(rootFolder(t))
  await using replacement = store.replace(collection())
  const small = replacement.add({ objects: [object('a', 1)] })
  await small
  let waited = true
  const large = replacement.add({ objects: pods(100, 2, 100_000) }).then(() => (waited = false))
  await new Promise((resolve) => setImmediate(resolve))
  t.ok(waited)
  await large
  await replacement.commit(head(200))
  t.equal(listed(store, collection())?.length, 101)
})

void t.test('a run of events in one turn goes to the disk in few commits', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  await replace(store, collection(), head(1), [object('a', 1)])
  using db = database(directory)
  db.exec(`CREATE TABLE committed (version TEXT);
    CREATE TRIGGER c AFTER UPDATE OF version ON collection BEGIN INSERT INTO committed VALUES (NEW.version); END`)
  const before = statSync(`${fileOf(directory)}-wal`).size
  await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      store.apply(collection(), [changed('MODIFIED', object('a', 2 + index))]),
    ),
  )
  t.equal(count(db, 'committed'), 100)
  const pages = (statSync(`${fileOf(directory)}-wal`).size - before) / 4120
  t.ok(pages < 60, `${pages} pages for 100 events`)
})

void t.test('one commit is bounded by a mebibyte', async (t) => {
  const commits: number[] = []
  await using store = await open(rootFolder(t), { onCommitted: (bytes) => commits.push(bytes) })
  await replace(store, collection(), head(1), [object('a', 1)])
  commits.splice(0)
  const bytes = Buffer.alloc(100 * 1024)
  await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      store.apply(collection(), [changed('MODIFIED', object('a', 2 + index, { bytes }))]),
    ),
  )
  const mebi = 1024 * 1024
  t.ok(Math.max(...commits) <= mebi, `${commits}`)
  t.ok(Math.max(...commits) > mebi - 2 * bytes.byteLength, `no less than that: ${commits}`)
  t.equal(commits.length, 3)
})

/**
 * Lists of 30 pods, one after the other, each replaced whole and changed by an event; killed at a
 * moment that differs each time.
 */
void t.test(
  'a store killed at any moment holds the last list or the one before, whole',
  async (t) => {
    const directory = rootFolder(t)
    let acknowledged = 0
    for (let round = 0; round < 10; round += 1) {
      const child = fork(crasher, [directory, String(acknowledged)], { silent: true })
      const limit = acknowledged + 1 + round
      child.on('message', (generation: number) => {
        acknowledged = Math.max(acknowledged, generation)
        if (generation < limit) return
        const spins = round * 40
        let left = spins
        const kill = (): unknown => (left-- > 0 ? setImmediate(kill) : child.kill('SIGKILL'))
        kill()
      })
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
      t.equal(signal, 'SIGKILL', 'it was killed, and did not end by itself')
      await using store = await open(directory)
      const found = listed(store, collection())!
      const generations = new Set(found.map((text) => Number(text?.split(' ')[1])))
      t.equal(generations.size, 1, `round ${round}: one list, not two`)
      const [generation = 0] = generations
      t.ok(generation >= acknowledged, `round ${round}: ${acknowledged} was acknowledged`)
      t.equal(found.length, 30)
      const [list, event] = [generation * 100 + 50, generation * 100 + 60]
      const { resourceVersion: last } = store.list(collection())!
      const events = last === String(event) ? 1 : 0
      t.equal((eventsAfter(store, collection(), list) as unknown[]).length, events)
      if (events === 1) t.strictSame(eventsAfter(store, collection(), event), [])
      t.equal(eventsAfter(store, collection(), list - 1), 'expired')
      using db = database(directory)
      t.equal(count(db, 'staged'), 0)
      t.equal(count(db, 'body'), count(db, referencedBodies))
      acknowledged = generation
    }
    t.strictSame(faults, [])
  },
)

void t.test('a truncated key file is replaced', async (t) => {
  const directory = rootFolder(t)
  await (await open(directory))[Symbol.asyncDispose]()
  writeFileSync(join(directory, 'store.key'), 'short')
  await using store = await open(directory)
  t.equal(readFileSync(join(directory, 'store.key')).byteLength, 32)
  t.strictSame(faults, ['resealed'])
  t.equal(store.list(secrets), undefined)
})
