import t from 'tap'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import {
  changed,
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  replace,
  texts,
  eventsAfter,
} from '../../../contracts/object-store.ts'
import type { ScopeKey } from '../../../../src/hub/store/sqlite/address.ts'
import { openReadsAlone } from '../../../../src/hub/store/sqlite/open-reads.ts'
import { Seal } from '../../../../src/hub/store/sqlite/seal.ts'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import { count, database, fileOf, open, faults } from './opened.ts'

/** As the first release wrote it; not taken from the sources, which it is to hold against. */
const first = `
  CREATE TABLE scope (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL, form TEXT NOT NULL,
    api_group TEXT NOT NULL, api_version TEXT NOT NULL, resource TEXT NOT NULL,
    UNIQUE (identity, form, api_group, api_version, resource)
  ) STRICT;

  CREATE TABLE collection (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, label_selector TEXT NOT NULL, field_selector TEXT NOT NULL,
    kind_group TEXT NOT NULL, kind_version TEXT NOT NULL, kind TEXT NOT NULL,
    version TEXT NOT NULL,
    confirmed_at INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    holes INTEGER NOT NULL,
    extra TEXT NOT NULL,
    UNIQUE (scope, namespace, label_selector, field_selector)
  ) STRICT;

  CREATE TABLE body (
    id INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;

  CREATE TABLE member (
    collection INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    body INTEGER NOT NULL,
    uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (collection, namespace, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE single (
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    body INTEGER NOT NULL,
    uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    kind_group TEXT NOT NULL, kind_version TEXT NOT NULL, kind TEXT NOT NULL,
    PRIMARY KEY (scope, namespace, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE forgotten (
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (scope, namespace, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE staged (
    scope INTEGER NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL,
    replacement INTEGER NOT NULL,
    body INTEGER NOT NULL,
    uid TEXT NOT NULL, version TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (scope, namespace, name, replacement)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE document (
    identity TEXT NOT NULL, url TEXT NOT NULL, accept TEXT NOT NULL,
    content_type TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (identity, url, accept)
  ) STRICT;

  CREATE TABLE audience (identity TEXT PRIMARY KEY, idle_days INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE aged (id INTEGER PRIMARY KEY, day INTEGER NOT NULL) STRICT;
  CREATE TABLE seal (fingerprint TEXT NOT NULL) STRICT;
  PRAGMA user_version = 1;
`

/**
 * Documents as the first release kept them: under the query and the Accept header with which they
 * were asked for.
 */
const documents: readonly (readonly [url: string, accept: string, type: string, body: string])[] = [
  ['/api', '', 'application/json', 'of one program'],
  ['/api', 'application/json, */*', 'application/json', 'of another'],
  ['/openapi/v3/api/v1?hash=A', '*/*', 'application/json', 'a schema'],
  [
    '/openapi/v2',
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    'in protobuf',
  ],
]

/**
 * A file of the first release: a list of two pods, a record of one, documents, a collection that
 * had missed a write.
 */
function firstRelease(directory: string): void {
  mkdirSync(join(directory, 'cache'), { recursive: true })
  using db = database(directory)
  db.exec(`PRAGMA page_size = 2048; PRAGMA journal_mode = WAL; ${first}`)
  db.exec(`
    INSERT INTO scope VALUES (1, '${nodeIdentity}', 'json', '', 'v1', 'pods');
    INSERT INTO collection VALUES (1, 1, '', '', '', '', 'v1', 'PodList', '8', 1000, 1, 0, '"x":1');
    INSERT INTO collection VALUES (2, 1, '', 'app=x', '', '', 'v1', 'PodList', '9', 1000, 0, 0, '');
    INSERT INTO aged VALUES (1, 20000);`)
  const body = db.prepare('INSERT INTO body VALUES (?, ?, ?)')
  const member = db.prepare("INSERT INTO member VALUES (1, 'default', ?, ?, ?, ?, ?)")
  const stored = [object('a', 3), object('b', 5), object('s', 11)]
  for (const [at, { name, uid, resourceVersion, bytes }] of stored.entries()) {
    const padded = Buffer.alloc(32)
    padded.set(bytes)
    const of = crc32(`default\0${name}\0${uid}\0${resourceVersion}`)
    body.run(at + 1, crc32(padded, of) | 0, padded)
    if (name !== 's') member.run(name, at + 1, uid, resourceVersion, bytes.byteLength)
  }
  db.exec(`INSERT INTO single VALUES
    (1, 'default', 's', 3, 'uid of s', '11', 7, '', 'v1', 'Pod')`)
  const document = db.prepare('INSERT INTO document VALUES (?, ?, ?, ?, ?, ?)')
  for (const [url, accept, type, body] of documents)
    document.run(nodeIdentity, url, accept, type, crc32(body), Buffer.from(body))
}

void t.test('records of the first release are kept, and updated from there', async (t) => {
  const directory = t.testdir()
  firstRelease(directory)
  {
    await using store = await open(directory)
    t.strictSame(faults, [])
    t.match(store.list(collection()), { resourceVersion: '8', extra: '"x":1' })
    t.strictSame(listed(store, collection()), ['a at 3', 'b at 5'])
    t.equal(got(store, keyOf('s')), 's at 11')
    t.match(store.get(keyOf('a')), { confirmedAt: 1000 })
    t.match(store.get(keyOf('s')), { confirmedAt: 0 }, 'which was not kept')
    const json = 'application/json'
    const document = (path: string, representation: string): string | undefined => {
      const found = store.document({ identity: nodeIdentity, path, representation })
      return found && Buffer.from(found.body).toString()
    }
    t.match(document('/api', json), /^of /)
    t.equal(document('/openapi/v3/api/v1', json), 'a schema')
    const protobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
    t.equal(document('/openapi/v2', protobuf), 'in protobuf')
    t.equal(store.documents(nodeIdentity, 9).length, 3, 'each once')
    t.equal(store.list(collection({ labelSelector: 'app=x' })), undefined)
    t.equal(eventsAfter(store, collection(), 7), 'expired')
    t.strictSame(eventsAfter(store, collection(), 8), [])
    await store.apply(collection(), [changed('MODIFIED', object('a', 9))])
    t.strictSame(eventsAfter(store, collection(), 8), ['MODIFIED a at 9 after a at 3'])
    const key = collection({ labelSelector: 'app=x' })
    await replace(store, key, head(12), [object('b', 5)])
    t.strictSame(eventsAfter(store, key, 12), [])
  }
  await using store = await open(directory)
  t.strictSame(eventsAfter(store, collection(), 8), ['MODIFIED a at 9 after a at 3'])
  using db = database(directory)
  t.equal(count(db, 'body'), 4)
  t.match(db.prepare('PRAGMA user_version').get(), { user_version: Number })
})

void t.test('records of the first release are served where they cannot be changed', async (t) => {
  const directory = t.testdir()
  firstRelease(directory)
  // Some of it is in the log only.
  using db = database(directory)
  db.exec('UPDATE collection SET confirmed_at = 2000')
  const before = readFileSync(fileOf(directory))
  const reads = openReadsAlone(fileOf(directory), new Seal(Buffer.alloc(32)))!
  const scope: ScopeKey = [nodeIdentity, 'json', '', 'v1', 'pods']
  const at = { scope, namespace: '', labelSelector: '', fieldSelector: '' }
  const found = reads.head(at)!
  t.match(found, { version: '8', whole: true, confirmedAt: 2000 })
  const objects = reads.bodies(scope, reads.members(found.id), () => t.fail('it is damaged'))
  t.strictSame(texts(objects), ['a at 3', 'b at 5'])
  t.strictSame(reads.events(found, '8'), [])
  t.equal(reads.head({ ...at, labelSelector: 'app=x' })?.whole, false)
  reads.close()
  t.strictSame(readFileSync(fileOf(directory)), before)
})
