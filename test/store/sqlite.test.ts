import t, { type Test } from 'tap'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import type { ApiObject } from '../../src/kube/object.ts'
import { node, tokenHolder } from '../../src/request/identity.ts'
import { openStore, type StoreOptions } from '../../src/store/sqlite/open.ts'
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { CollectionKey, ObjectStore } from '../../src/store/store.ts'
import {
  bookmark,
  changed,
  collection,
  got,
  head,
  json,
  keyOf,
  listed,
  object,
  objectStoreContract,
  pod,
  replace,
  texts,
} from '../contracts/object-store.ts'

const trouble: string[] = []

const open = (directory: string, with_: Partial<StoreOptions> = {}): Promise<SqliteStore> =>
  openStore({
    directory: join(directory, 'cache'),
    keyFile: join(directory, 'store.key'),
    report: (kind) => trouble.push(kind),
    ...with_,
  })

const fileOf = (directory: string): string => join(directory, 'cache', 'objects.db')

/** A connection of the test's own, to look at what lies in the file, or to damage it. */
const database = (directory: string): DatabaseSync =>
  new DatabaseSync(fileOf(directory), { timeout: 5000 })

const count = (db: DatabaseSync, table: string): number =>
  Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])

/** Changes when, and only when, another connection has committed. */
const dataVersion = (db: DatabaseSync): unknown => db.prepare('PRAGMA data_version').get()

const pods = (count: number, version: number, size = 100): ApiObject[] =>
  Array.from({ length: count }, (_, index) =>
    object(`pod-${String(index).padStart(4, '0')}`, version + index, {
      bytes: Buffer.alloc(size, String(version)),
    }),
  )

t.beforeEach(() => trouble.splice(0))

void t.test('keeps the contract', async (t) => objectStoreContract(t, open))

void t.test('files are closed to others, whatever the umask', async (t) => {
  const directory = t.testdir()
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

void t.test('files that stood open are closed to others', async (t) => {
  const directory = t.testdir({ cache: { 'objects.db': '' }, 'store.key': Buffer.alloc(32) })
  for (const name of ['cache', 'cache/objects.db', 'store.key']) {
    chmodSync(join(directory, name), 0o777)
  }
  await using _ = await open(directory)
  for (const name of ['cache', 'cache/objects.db', 'cache/objects.db-wal', 'store.key']) {
    t.equal(statSync(join(directory, name)).mode & 0o077, 0, name)
  }
})

void t.test('the same list again costs no write, a newer version of it one row', async (t) => {
  const directory = t.testdir()
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

void t.test('what is unchanged is known after a restart too', async (t) => {
  const directory = t.testdir()
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

/** Bodies somebody refers to. */
const held = '(SELECT body FROM member UNION SELECT body FROM single UNION SELECT body FROM staged)'

void t.test('a body is kept once for all who hold it, and no longer than that', async (t) => {
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
    t.equal(count(db, held), 2)
    await replace(store, collection(), head(9))
    t.equal(count(db, held), 1)
    await replace(store, other, head(9))
    t.equal(count(db, held), 0)
  }
  using db = database(directory)
  t.equal(count(db, 'body'), 0)
})

void t.test('one body serves all who are told of it at the same time', async (t) => {
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

void t.test('a row that nobody refers to is used again, or given back', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(2000), pods(1000, 1, 600))
  const rows = count(db, 'body')
  for (const [index, version] of Array.from({ length: 100 }, (_, i) => [i, 3000 + i] as const)) {
    const [pod] = pods(index + 1, version, 600 + (index % 2)).slice(-1)
    await store.apply(collection(), [changed('MODIFIED', pod!)])
  }
  t.ok(count(db, 'body') <= rows + 4, `${count(db, 'body')} rows for ${rows} pods`)
  await replace(store, collection(), head(5000))
  for (let write = 0; write < 8; write += 1)
    await store.apply(collection(), [bookmark(5001 + write)])
  t.ok(count(db, 'body') <= 140, `${count(db, 'body')} rows for none`)
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
  t.strictSame(trouble, [])
})

void t.test(
  'a write that is not taken leaves rows that were used again as they were',
  async (t) => {
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
    }
    for (const name of ['p', 'q', 'r']) await store.put(keyOf(name), pod, object(name, 10))
    t.strictSame(listed(store, collection()), ['a at 8'])
    for (const name of ['p', 'q', 'r']) t.equal(got(store, keyOf(name)), `${name} at 10`)
    t.equal(count(db, held), 4)
  },
)

void t.test('that an object is gone is noted for as long as it would be found', async (t) => {
  const directory = t.testdir()
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

void t.test('a list given up leaves nothing behind', async (t) => {
  const directory = t.testdir()
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
  const directory = t.testdir()
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

void t.test('with another key what was sealed is unknown, and the rest is served', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    await replace(store, secrets, head(5), [object('s', 1)])
    await store.put(secretKey('single'), pod, object('single', 1))
    await replace(store, collection(), head(5), [object('p', 1)])
  }
  await using store = await open(directory, { keyFile: join(directory, 'other.key') })
  t.equal(store.list(secrets), undefined)
  t.equal(store.get(secretKey('s')), undefined)
  t.equal(store.get(secretKey('single')), undefined)
  t.strictSame(listed(store, collection()), ['p at 1'])
  t.strictSame(trouble, ['resealed'])
  await replace(store, secrets, head(6), [object('s', 1)])
  t.strictSame(listed(store, secrets), ['s at 1'])
})

void t.test('a sealed body moved to another row does not open', async (t) => {
  const directory = t.testdir()
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
    const directory = t.testdir()
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2), object('c', 3)])
    await store.put(keyOf('b'), pod, object('b', 2))
    using db = database(directory)
    db.exec("UPDATE body SET bytes = x'00' WHERE id IN (SELECT body FROM member WHERE name = 'b')")
    t.strictSame(listed(store, collection()), ['a at 1', 'c at 3'])
    t.equal(store.get(keyOf('b')), undefined, 'damaged is not absent')
    t.equal(store.get(keyOf('never')), undefined, 'nor does a list with a hole say what is absent')
    t.strictSame(trouble, ['damaged'], 'reported once')
    await store.apply(collection(), [bookmark(6)])
    t.equal(count(db, 'body'), 2)
    await replace(store, collection(), head(6), [object('a', 1), object('b', 2), object('c', 3)])
    t.strictSame(listed(store, collection()), ['a at 1', 'b at 2', 'c at 3'])
    t.equal(store.get(keyOf('never')), 'absent')
  },
)

void t.test('a hole is remembered across a restart', async (t) => {
  const directory = t.testdir()
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
  t.strictSame(trouble, ['set-aside'])
  await replace(store, collection(), head(5), [object('a', 1)])
  t.strictSame(listed(store, collection()), ['a at 1'])
  const aside = readdirSync(join(directory, 'cache')).filter((name) => name.includes('unusable'))
  t.equal(aside.length, 1)
  t.match(readFileSync(join(directory, 'cache', aside[0]!), 'utf8'), /^no database/)
})

void t.test('a database of a later release, or without our tables, is set aside', async (t) => {
  for (const change of ['PRAGMA user_version = 1000', 'DROP TABLE member']) {
    trouble.splice(0)
    const directory = t.testdir()
    await (await open(directory))[Symbol.asyncDispose]()
    {
      using db = database(directory)
      db.exec(change)
    }
    await using store = await open(directory)
    t.strictSame(trouble, ['set-aside'], change)
    t.equal(store.list(collection()), undefined)
  }
})

void t.test('where nothing can be written, opening says so', async (t) => {
  const directory = t.testdir({ cache: 'a file' })
  await t.rejects(open(directory), { code: 'STORE_FAILURE' })
})

/** Makes every write of an object with this name fail, until it is dropped. */
const refusing = (db: DatabaseSync, name: string): Disposable => {
  const tables = ['member', 'single', 'staged']
  for (const table of tables) {
    db.exec(`CREATE TRIGGER refuse_${table} BEFORE INSERT ON ${table} WHEN NEW.name = '${name}'
      BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  }
  return {
    [Symbol.dispose]: () => {
      for (const table of tables) db.exec(`DROP TRIGGER refuse_${table}`)
    },
  }
}

void t.test('a write that fails changes nothing and leaves its collection unfit', async (t) => {
  const directory = t.testdir()
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
  t.ok(trouble.includes('write'))
})

void t.test('a list that cannot be staged is not committed in part', async (t) => {
  const directory = t.testdir()
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
  const directory = t.testdir()
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

void t.test('that a write was missed is written down as soon as the disk takes it', async (t) => {
  const directory = t.testdir()
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
    }
    db.exec('DROP TRIGGER all_refused')
    await store.put(keyOf('x'), pod, object('x', 9))
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
  t.equal(got(store, keyOf('x')), 'x at 9')
})

void t.test('a full disk refuses writes, reads go on, and with room it goes on', async (t) => {
  const directory = t.testdir()
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

void t.test('whoever brings more than the disk takes waits', async (t) => {
  await using store = await open(t.testdir())
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
  const directory = t.testdir()
  await using store = await open(directory)
  await replace(store, collection(), head(1), [object('a', 1)])
  using db = database(directory)
  db.exec(`CREATE TABLE committed (version TEXT);
    CREATE TRIGGER c AFTER UPDATE ON collection BEGIN INSERT INTO committed VALUES (NEW.version); END`)
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

void t.test('a directory is used by one store at a time', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    for (let i = 0; i < 2; i += 1) {
      await t.rejects(open(directory), {
        code: 'STORE_FAILURE',
        message: 'the store cannot be opened: another process uses it',
      })
    }
    const child = fork(crasher, [directory, '0'], { silent: true })
    const [code] = (await once(child, 'exit')) as [number | null]
    t.equal(code, 1, 'nor by another process')
    await replace(store, collection(), head(5), [object('a', 1)])
    t.strictSame(trouble, [])
  }
  await using store = await open(directory)
  t.strictSame(listed(store, collection()), ['a at 1'], 'after it is closed the next one has it')
})

void t.test('a store that could not be opened holds nothing', async (t) => {
  const directory = t.testdir({ 'no folder': '' })
  await t.rejects(open(directory, { keyFile: join(directory, 'no folder', 'store.key') }))
  await using _ = await open(directory)
})

void t.test('a lock file that is damaged is replaced', async (t) => {
  const directory = t.testdir({ cache: { 'lock.db': 'no database'.repeat(1000) } })
  await using _ = await open(directory)
  await t.rejects(open(directory), { code: 'STORE_FAILURE' })
})

/** The threads of stores opened from here on, the newest last. */
const writersOf = (t: Test): Worker[] => {
  const workers: Worker[] = []
  const note = (worker: Worker): unknown => workers.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  return workers
}

/** Resolves when writes are taken again. */
async function writable(store: ObjectStore): Promise<void> {
  for (let taken = false; !taken;) {
    taken = await store.put(keyOf('trial'), pod, object('trial', '')).then(
      () => true,
      () => false,
    )
    await new Promise((resolve) => setImmediate(resolve))
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
  t.ok(trouble.includes('writer'))

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
    await writable(store)
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
})

void t.test('a store whose writer has ended closes', async (t) => {
  const directory = t.testdir()
  const writers = writersOf(t)
  const store = await open(directory)
  await writers[0]!.terminate()
  await t.rejects(store.put(keyOf('z'), pod, object('z', 1)))
  await store[Symbol.asyncDispose]()
  t.equal(writers.length, 1, 'and starts no other')
  await using _ = await open(directory)
})

void t.test('lists read while writers change are whole', async (t) => {
  const writers = writersOf(t)
  await using store = await open(t.testdir())
  await replace(store, collection(), head(200), pods(60, 1, 30_000))
  for (let group = 0; group < 5; group += 1)
    await store.put(keyOf('x'), pod, object('x', 900 + group))
  await writers[0]!.terminate()
  await writable(store)
  const batches = store.list(collection())!.batches[Symbol.iterator]()
  const first = batches.next().value as readonly ApiObject[]
  await replace(store, collection(), head(400), pods(60, 300, 30_000))
  for (let group = 0; group < 5; group += 1) {
    await store.put(keyOf('x'), pod, object('x', 1000 + group))
  }
  const read = [...first]
  for (let next = batches.next(); !next.done; next = batches.next()) read.push(...next.value)
  t.equal(read.length, 60)
  t.strictSame(new Set(read.map(({ bytes }) => bytes[0])), new Set([0x31]))
})

const ofToken = (hash: string): CollectionKey =>
  collection({ audience: { identity: tokenHolder(hash), form: json } })

/** A list, a record and a document for the token. */
async function keepFor(store: ObjectStore, hash: string, members = 1): Promise<void> {
  const { audience } = ofToken(hash)
  await replace(store, ofToken(hash), head(5000), pods(members, 1))
  await store.put(keyOf('own', { audience }), pod, object('own', 6000))
  const key = { identity: audience.identity, url: '/api', accept: '' }
  await store.putDocument(key, { contentType: 'text/plain', body: Buffer.from('api') })
}

const tables = ['scope', 'collection', 'member', 'single', 'document', 'audience']

void t.test('what is kept for a token nobody uses goes after thirty days of running', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  await store.putDocument(
    { identity: node, url: '/api', accept: '' },
    { contentType: 'text/plain', body: Buffer.from('api') },
  )
  await keepFor(store, 'used')
  await store.sweep(1)
  const before = tables.map((table) => count(db, table))
  await keepFor(store, 'rotated')
  for (let day = 2; day <= 30; day += 1) {
    await store.sweep(day)
    await store.sweep(day)
    store.get(keyOf('any', { audience: ofToken('used').audience }))
  }
  await store.sweep(20_000)
  t.equal(count(db, "audience WHERE identity = 'token:rotated'"), 1, 'a day counts once')
  await store.sweep(20_001)
  t.strictSame(
    tables.map((table) => count(db, table)),
    before,
  )
  t.equal(store.list(ofToken('rotated')), undefined)
  t.equal(store.get(keyOf('own', { audience: ofToken('rotated').audience })), undefined)
  t.strictSame(listed(store, ofToken('used')), ['1'.repeat(100)])
  t.strictSame(listed(store, collection()), ['a at 1'])
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

void t.test('forgetting a token takes no more than a step at a time', async (t) => {
  const writers = writersOf(t)
  const directory = t.testdir()
  await using store = await open(directory)
  await keepFor(store, 'large', 1200)
  for (let day = 1; day <= 30; day += 1) await store.sweep(day)
  let groups = 0
  writers[0]!.on('message', () => (groups += 1))
  await store.sweep(31)
  t.ok(groups > 3, `${groups} groups`)
  using db = database(directory)
  t.equal(count(db, 'member'), 0)
})

void t.test('that a token is used is written once a day, and only where it is known', async (t) => {
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
  store.list(ofToken('x'))
  await store.forget(keyOf('a'))
  t.strictSame(dataVersion(db), noted)
})

const crasher = join(import.meta.dirname, 'crash-child.ts')

/** Lists of 30 pods, one after the other, each replaced whole and changed by an event; killed at a moment that differs each time. */
void t.test(
  'a store killed at any moment holds the last list or the one before, whole',
  async (t) => {
    const directory = t.testdir()
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
      using db = database(directory)
      t.equal(count(db, 'staged'), 0)
      t.equal(count(db, 'body'), count(db, held))
      acknowledged = generation
    }
    t.strictSame(trouble, [])
  },
)

void t.test('a key file cut short is made anew', async (t) => {
  const directory = t.testdir()
  await (await open(directory))[Symbol.asyncDispose]()
  writeFileSync(join(directory, 'store.key'), 'short')
  await using store = await open(directory)
  t.equal(readFileSync(join(directory, 'store.key')).byteLength, 32)
  t.strictSame(trouble, ['resealed'])
  t.equal(store.list(secrets), undefined)
})
