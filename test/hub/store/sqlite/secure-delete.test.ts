import t, { type Test } from 'tap'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { SqliteStore } from '../../../../src/hub/store/sqlite/sqlite-store.ts'
import {
  collection,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { database, fileOf, open, pods, faults } from './opened.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

t.beforeEach(() => faults.splice(0))

const gvr = { group: '', version: 'v1', resource: 'secrets' }
const secrets = collection({ gvr })
const held = Buffer.from('the password of the database, again and again; ')
const names = ['a', 'b', 'c', 'd']

/** One within a page, others over many. */
const secret = (name: string, version = 10) =>
  object(name, version, {
    bytes: Buffer.alloc(name === 'a' ? 300 : 30_000, `${name} ${version} ${held.toString()}`),
  })

/** The bodies of all Secrets as they lie in the database. */
const sealedIn = (db: DatabaseSync): readonly Uint8Array[] =>
  db
    .prepare(
      `SELECT bytes FROM body WHERE id IN (
         SELECT member.body FROM member JOIN collection ON collection.id = member.collection
         JOIN scope ON scope.id = collection.scope WHERE resource = 'secrets'
         UNION SELECT body FROM single JOIN scope ON scope.id = scope WHERE resource = 'secrets')`,
    )
    .all()
    .map(({ bytes }) => bytes as Uint8Array)

/** The parts of bodies, each shorter than a page, of which a file of the store has a copy. */
function found(directory: string, bodies: readonly Uint8Array[]): number {
  const folder = dirname(fileOf(directory))
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)))
  let parts = 0
  for (const body of bodies) {
    for (let at = 0; at + 32 <= body.byteLength; at += 256) {
      const part = body.subarray(at, at + 32)
      if (files.some((file) => file.includes(part))) parts += 1
    }
  }
  return parts
}

/** What others leave is used again only after further commits, and then all is in the database. */
async function settled(t: Test, store: SqliteStore, db: DatabaseSync): Promise<void> {
  for (let version = 900; version < 905; version += 1)
    await store.put(keyOf('another'), pod, object('another', version))
  t.strictSame(Object.values(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() ?? {}), [0, 0, 0])
}

async function filled(t: Test): Promise<{
  readonly directory: string
  readonly store: SqliteStore
  readonly db: DatabaseSync
}> {
  const directory = rootFolder(t)
  const store = await open(directory)
  t.teardown(() => store[Symbol.asyncDispose]())
  const db = database(directory)
  t.teardown(() => db.close())
  await replace(store, collection(), head(9), pods(60, 1, 2_000))
  return { directory, store, db }
}

void t.test('no file has a Secret in the clear', async (t) => {
  const { directory, store, db } = await filled(t)
  await replace(
    store,
    secrets,
    head(50),
    names.map((name) => secret(name)),
  )
  await settled(t, store, db)
  t.equal(found(directory, [held]), 0)
  t.ok(found(directory, [Buffer.alloc(2_000, '1')]) > 0, 'as there is what is not sealed')
  t.equal(listed(store, secrets)?.length, names.length)
})

void t.test('no file keeps the sealed bytes of a deleted Secret', async (t) => {
  const { directory, store, db } = await filled(t)
  const bodies: Uint8Array[] = []
  for (const name of names) await store.put(keyOf(name, { gvr }), pod, secret(name))
  bodies.push(...sealedIn(db))
  for (const name of names) await store.put(keyOf(name, { gvr }), pod, secret(name, 20))
  bodies.push(...sealedIn(db))
  t.equal(bodies.length, 2 * names.length)
  for (const name of names) await store.forget(keyOf(name, { gvr }))
  await replace(
    store,
    secrets,
    head(50),
    names.map((name) => secret(name, 40)),
  )
  bodies.push(...sealedIn(db))
  t.equal(bodies.length, 3 * names.length)
  t.ok(found(directory, bodies) > 300, 'they were there')
  await replace(store, secrets, head(60))
  await settled(t, store, db)
  t.equal(found(directory, bodies), 0)
  t.strictSame(faults, [])
})

void t.test('sealed bytes that a crash has left are overwritten at the next start', async (t) => {
  const { directory, store, db } = await filled(t)
  await replace(
    store,
    secrets,
    head(50),
    names.map((name) => secret(name)),
  )
  const bodies = sealedIn(db)
  await store[Symbol.asyncDispose]()
  db.exec('DELETE FROM member WHERE body IN (SELECT id FROM body WHERE checksum = 0)')
  t.ok(found(directory, bodies) > 0)
  const next = await open(directory)
  t.teardown(() => next[Symbol.asyncDispose]())
  await settled(t, next, db)
  t.equal(found(directory, bodies), 0)
})

void t.test('sealed bytes that cannot be opened any more are overwritten, too', async (t) => {
  const { directory, store, db } = await filled(t)
  await replace(
    store,
    secrets,
    head(50),
    names.map((name) => secret(name)),
  )
  const bodies = sealedIn(db)
  await store[Symbol.asyncDispose]()
  const next = await open(directory, { sealingKey: Buffer.alloc(32, 'another key') })
  t.teardown(() => next[Symbol.asyncDispose]())
  await settled(t, next, db)
  t.equal(found(directory, bodies), 0)
  t.equal(listed(next, secrets), undefined)
})

void t.test('a Secret whose deletion fails is kept, and goes with the next one', async (t) => {
  const { directory, store, db } = await filled(t)
  for (const name of names) await store.put(keyOf(name, { gvr }), pod, secret(name))
  const bodies = sealedIn(db)
  await Promise.all(names.map((name) => store.forget(keyOf(name, { gvr }))))
  db.exec(`CREATE TRIGGER refuse BEFORE INSERT ON single WHEN NEW.name = 'poison'
    BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  for (let at = 0; at < 3; at += 1)
    await t.rejects(store.put(keyOf('poison'), pod, object('poison', at)))
  t.ok(found(directory, bodies) > 0)
  await settled(t, store, db)
  t.equal(found(directory, bodies), 0)
})
