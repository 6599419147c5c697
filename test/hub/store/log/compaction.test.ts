import { putDocument } from '../../../../src/hub/store/document.ts'
import t, { type Test } from 'tap'
import { cpSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { tokenHolder } from '../../../../src/api/request/identity.ts'
import { storedKey } from '../../../../src/base/stored-key.ts'
import { LogStore } from '../../../../src/hub/store/log/log-store.ts'
import { partsOf } from '../../../../src/hub/store/log/parts.ts'
import {
  StoreFailure,
  type CollectionKey,
  type ObjectStore,
} from '../../../../src/hub/store/store.ts'
import {
  changed,
  collection,
  got,
  head,
  json,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { Random } from '../../../fuzz/random.ts'
import { logFilesIn, recordsIn } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { until } from '../../../kit/until.ts'
import { api, faults, open, pods, secrets } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const maxBytes = 4 << 20
const bytesIn = (directory: string): number =>
  logFilesIn(join(directory, 'cache')).reduce((sum, file) => sum + statSync(file).size, 0)
const settings = { gvr: { group: '', version: 'v1', resource: 'configmaps' } }

/** Changes one object until the log has been written anew, several times. */
async function churn(store: ObjectStore, directory: string, times: number): Promise<void> {
  const isSnapshot = ({ record }: { record: { kind: string } }): boolean => record.kind === 'scope'
  let version = 1_000
  for (let seen = 0; seen < times;) {
    const before = recordsIn(join(directory, 'cache')).filter(isSnapshot).length
    await until('a compaction', async () => {
      for (let i = 0; i < 20; i += 1) {
        version += 1
        const bytes = Buffer.alloc(20_000, `a at ${version} `)
        await store.apply(collection(), [changed('MODIFIED', object('a', version, { bytes }))])
      }
      return recordsIn(join(directory, 'cache')).filter(isSnapshot).length !== before
    })
    seen += 1
  }
}

void t.test('what is in use outlives compactions, and garbage goes', async (t) => {
  const directory = rootFolder(t)
  const check = (store: ObjectStore): void => {
    t.equal(listed(store, collection())?.length, 2)
    t.strictSame(listed(store, secrets), ['s at 7'])
    t.equal(store.list(secrets)?.changedAt, '7')
    t.equal(got(store, keyOf('single', settings)), 'single at 6')
    t.equal(store.get(keyOf('gone')), undefined)
    t.equal(got(store, api), 'api')
  }
  {
    await using store = await open(directory, { maxBytes })
    await replace(store, secrets, head(5), [object('s', 1)])
    await store.apply(secrets, [changed('MODIFIED', object('s', 6))])
    await store.apply(secrets, [changed('MODIFIED', object('s', 7))])
    await replace(store, collection(), head(5), [object('a', 1), object('gone', 2)])
    await store.put(keyOf('single', settings), pod, object('single', 6))
    await store.forget(keyOf('gone'))
    await putDocument(store, api, 'text/plain', Buffer.from('api'))
    await churn(store, directory, 4)
    check(store)
    t.ok(bytesIn(directory) < maxBytes, `${bytesIn(directory)} bytes`)
  }
  await using store = await open(directory, { maxBytes })
  check(store)
  t.strictSame(faults, [])
})

void t.test('a list that is read for too long breaks off, and takes no room', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory, { maxBytes })
  await replace(store, collection(), head(500), pods(40, 100, 20_000))
  const batches = store.list(collection())!.batches[Symbol.iterator]()
  batches.next()
  await replace(store, collection(), head(900), [object('a', 800)])
  await churn(store, directory, 2)
  t.throws(() => [batches.next(), batches.next(), batches.next()], { code: 'STORE_FAILURE' })
  t.strictSame(faults, [], 'which is no damage')
})

void t.test('a list under way outlives a compaction', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory, { maxBytes })
    await replace(store, secrets, head(5), [object('s', 1), object('t', 2)])
    await replace(store, collection(), head(5), [object('a', 1)])
    await using list = store.replace(secrets)
    await list.add({ objects: [object('s', 1), object('u', 6)] })
    await churn(store, directory, 2)
    await list.commit(head(7))
  }
  await using store = await open(directory, { maxBytes })
  t.strictSame(listed(store, secrets), ['s at 1', 'u at 6'])
})

void t.test('what goes while the log is written anew stays away after a restart', async (t) => {
  const directory = rootFolder(t)
  const of = (name: string, labelSelector = ''): CollectionKey =>
    collection({ partition: { identity: tokenHolder(name), representation: json }, labelSelector })
  {
    const cache = join(directory, 'cache')
    mkdirSync(cache)
    const sealingKey = storedKey(join(directory, 'store.key'))
    const options = { directory: cache, sealingKey, report: () => {}, isShared: () => true }
    const opening = { lock: async () => {}, refusal: undefined, release: () => {} }
    const parts = partsOf(options, opening)
    await using store = new LogStore(parts)
    for (let at = 0; at < 30; at += 1) {
      const gvr = { group: '', version: 'v1', resource: `r${at}` }
      await replace(store, collection({ gvr }), head(1), [object('a', 1)])
    }
    await replace(store, of('a', 'app=x'), head(1), [object('x', 1)])
    const pass = parts.upkeep.pass()
    await until('a snapshot', () => recordsIn(cache).some(({ record }) => record.kind === 'scope'))
    await replace(store, of('b', 'app=x'), head(2), [object('x', 2)])
    await store.put(keyOf('x', of('a')), pod, object('x', 3))
    await store.apply(of('a', 'app=x'), [changed('DELETED', object('x', 4))], { since: '2' })
    await store.drop()
    await pass
    t.equal(store.get(keyOf('x', of('a'))), undefined)
  }
  await using store = await open(directory, { isShared: () => true })
  t.equal(store.get(keyOf('x', of('a'))), undefined, 'of another cluster it would be wrong')
})

/** What is stored, told in one text. */
const keys: readonly CollectionKey[] = [
  collection(),
  collection({ labelSelector: 'app=x' }),
  secrets,
  collection({ partition: { identity: tokenHolder('t'), representation: json } }),
]
const names = ['a', 'b', 'c', 'd', 'e', 'f']

function contentOf(store: ObjectStore): string {
  return JSON.stringify(
    keys.map((key) => [
      store.version(key),
      listed(store, key)?.map((text) => text?.slice(0, 20)),
      names.map((name) => got(store, keyOf(name, key))?.slice(0, 20)),
      store.list(key)?.changedAt,
    ]),
  )
}

/** Random writes of all kinds, with starts from copies of the files as a kill leaves them. */
async function lives(t: Test, seed: number): Promise<void> {
  const random = new Random(seed)
  const directory = rootFolder(t)
  let version = 10
  let store = await open(directory, { maxBytes: 600_000 })
  const any = (name = random.of(names)) => {
    version += 1
    // For the largest there is no room at times.
    const size = random.of([10, 500, 500, 9_000, 9_000, random.once(4) ? 300_000 : 10])
    return object(name, version, { bytes: Buffer.alloc(size, `${name} at ${version} `) })
  }
  const write = (key: CollectionKey): Promise<unknown> => {
    const what = random.below(10)
    if (what < 2) {
      const some = [...new Set([random.of(names), random.of(names)])].map(any)
      return replace(store, key, head(++version), some)
    }
    if (what < 7) return store.apply(key, [changed(random.once(4) ? 'DELETED' : 'MODIFIED', any())])
    if (what === 7) return store.put(keyOf(random.of(names), key), pod, any())
    if (what === 8) return store.forget(keyOf(random.of(names), key))
    return replace(store, key, head(++version))
  }
  for (let step = 0; step < 200; step += 1) {
    const writes = Array.from({ length: 1 + random.below(5) }, () => write(random.of(keys)))
    for (const each of await Promise.allSettled(writes))
      if (each.status === 'rejected' && !(each.reason instanceof StoreFailure)) throw each.reason
    // What was refused is recorded as unknown before this.
    await store.forget(keyOf('none'))
    if (!random.once(8)) continue
    const content = contentOf(store)
    const killed = join(directory, `killed-${step}`)
    for (const each of ['cache', 'store.key'])
      cpSync(join(directory, each), join(killed, each), { recursive: true })
    {
      await using copy = await open(killed, { maxBytes: 600_000 })
      t.equal(contentOf(copy), content, `seed ${seed}, step ${step}`)
    }
    if (!random.once(3)) continue
    await store[Symbol.asyncDispose]()
    store = await open(directory, { maxBytes: 600_000 })
    t.equal(contentOf(store), content, `seed ${seed}, step ${step}, opened again`)
  }
  await store[Symbol.asyncDispose]()
}

for (const seed of [1, 2, 3, 4, 5, 6])
  void t.test(`a store is after a kill what it was before: seed ${seed}`, async (t) => {
    await lives(t, seed)
    t.strictSame(new Set(faults), new Set(['write']), 'some found no room, and nothing is damaged')
  })
