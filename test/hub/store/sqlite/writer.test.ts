import t from 'tap'
import { readFileSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import {
  collection,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { database, fileOf, maxLogBytes, open, pods, faults, turn } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const megabyte = 1 << 20
const document = Buffer.alloc(2 * megabyte)

void t.test(
  'a flood of documents leaves the log within its bounds, while lists are read',
  async (t) => {
    const directory = t.testdir()
    await using store = await open(directory)
    await replace(store, collection(), head(500), pods(200, 1, 2_000))
    const readers = [database(directory), database(directory)]
    const begin = (reader: DatabaseSync): void => {
      reader.exec('BEGIN')
      reader.prepare('SELECT count(*) FROM document').get()
    }
    let isOver = false
    const reading = (async () => {
      // One always begins before the other ends, so that the log is never read by none.
      for (let at = 0; !isOver; at += 1) {
        begin(readers[at % 2]!)
        for (let i = 0; i < 5; i += 1) await turn()
        const other = readers[(at + 1) % 2]!
        if (other.isTransaction) other.exec('COMMIT')
      }
    })()
    let size = 0
    for (let at = 0; at < 40; at += 1) {
      const key = {
        identity: nodeIdentity,
        path: `/openapi/v3/apis/${at % 5}`,
        representation: 'json',
      }
      document.fill(at)
      await store.putDocument(key, { mediaType: 'json', body: document })
      t.equal(listed(store, collection())?.length, 200)
      size = Math.max(size, statSync(`${fileOf(directory)}-wal`).size)
    }
    isOver = true
    await reading
    for (const reader of readers) reader.close()
    t.ok(size > 12 * megabyte, 'and is not copied for each of them')
    t.ok(size <= maxLogBytes, `${size} bytes`)
    t.strictSame(faults, [])
  },
)

void t.test('lists are counted by what they write', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  let size = 0
  // One commit makes members of all that was staged before, whose bodies the log has then.
  for (let at = 0; at < 8; at += 1) {
    await replace(
      store,
      collection({ labelSelector: `app=${at % 2}` }),
      head(1e5 * (at + 1)),
      pods(4_000, 1e5 * at, 500),
    )
    size = Math.max(size, statSync(`${fileOf(directory)}-wal`).size)
  }
  t.ok(size <= maxLogBytes, `${size} bytes`)
})

void t.test('a reader of another process holds back the log, and no writer', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  const put = async (at: number): Promise<number> => {
    const key = { identity: nodeIdentity, path: '/openapi/v2', representation: 'json' }
    document.fill(at)
    await store.putDocument(key, { mediaType: 'json', body: document })
    return statSync(`${fileOf(directory)}-wal`).size
  }
  await put(0)
  {
    using reader = database(directory)
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM document').get()
    let size = 0
    for (let at = 1; at < 20; at += 1) size = await put(at)
    t.ok(size > maxLogBytes, 'as long as it reads')
  }
  for (let at = 20; at < 25; at += 1) await put(at)
  t.ok((await put(25)) <= maxLogBytes, 'and not any more when it has ended')
})

void t.test('of what is deleted no name is left on a page that is still used', async (t) => {
  const directory = t.testdir()
  const gvr = { group: '', version: 'v1', resource: 'secrets' }
  const names = ['secret-kept-one', 'secret-gone', 'secret-kept-two']
  {
    await using store = await open(directory)
    for (const name of names) await store.put(keyOf(name, { gvr }), pod, object(name, 1))
    await store.forget(keyOf('secret-gone', { gvr }))
  }
  const left = readFileSync(fileOf(directory), 'latin1')
  t.strictSame(
    names.filter((name) => left.includes(name)),
    ['secret-kept-one', 'secret-kept-two'],
  )
})
