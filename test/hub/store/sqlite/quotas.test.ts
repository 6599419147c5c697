import t from 'tap'
import { nodeIdentity, tokenHolder } from '../../../../src/api/request/identity.ts'
import type { EvictedKind } from '../../../../src/hub/store/sqlite/messages.ts'
import type { Partition, CollectionKey, ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  collection,
  changed,
  got,
  head,
  json,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { count, database, open, pods, faults } from './opened.ts'
import { until } from '../../../kit/until.ts'

t.beforeEach(() => faults.splice(0))

/** A quarter of what the stores below may take, unless they say otherwise. */
const quota = 1 << 20

const partition = (hash: string): Partition => ({
  identity: tokenHolder(hash),
  representation: json,
})
const flooding = partition('flooding')
const other = partition('other')
const asNode: Partition = { identity: nodeIdentity, representation: json }

const large = (name: string, version = 1, size = 100_000) =>
  object(name, version, { bytes: Buffer.alloc(size, name) })

const listOf = (partition: Partition, selector = ''): CollectionKey =>
  collection({ partition, labelSelector: selector })

const version = (partition: Partition) => ({
  identity: partition.identity,
  path: '/version',
  representation: 'json',
})

/** A list, an object and a document, with some years of use before any flood. */
async function keepFor(store: ObjectStore, partition: Partition, members = 5): Promise<void> {
  await replace(store, listOf(partition), head(500), pods(members, 1, 20_000))
  await store.put(keyOf('own', { partition }), pod, object('own', 501))
  await store.putDocument(version(partition), { mediaType: 'json', body: Buffer.from('v') })
}

function hasAll(store: ObjectStore, partition: Partition, members = 5): boolean {
  return (
    listed(store, listOf(partition))?.length === members &&
    got(store, keyOf('own', { partition })) === 'own at 501' &&
    store.document(version(partition)) !== undefined
  )
}

interface Evicted {
  readonly kinds: EvictedKind[]
  readonly of: string[]
}

/** A store in which the node has more than any quota, and another caller a little. */
async function start(directory: string, { maxBytes = 4 << 20 } = {}) {
  const evicted: Evicted = { kinds: [], of: [] }
  const store = await open(directory, {
    maxBytes,
    onEvicted: (counts, of) => {
      evicted.kinds.push(...counts.keys())
      if (of !== undefined) evicted.of.push(of)
    },
  })
  await keepFor(store, asNode, 60)
  await keepFor(store, other)
  const othersAreWhole = (): boolean => hasAll(store, asNode, 60) && hasAll(store, other)
  return { store, evicted, othersAreWhole }
}

/** Resolves when room has been made, of which `evicted` tells. */
async function made({ kinds }: Evicted, times = 1): Promise<void> {
  await until(`${times} evictions`, () => kinds.length >= times)
}

void t.test('a caller beyond its quota loses its least recently used records', async (t) => {
  const { store, evicted, othersAreWhole } = await start(t.testdir())
  await using _ = store
  const names = Array.from({ length: 40 }, (_, at) => `o-${String(at).padStart(2, '0')}`)
  const kept = () =>
    names.filter((name) => got(store, keyOf(name, { partition: flooding })) !== undefined)
  for (const [at, name] of names.entries()) {
    await store.put(keyOf(name, { partition: flooding }), pod, large(name))
    await until('what is over the quota to go', () => kept().length <= quota / 100_000)
    const there = kept()
    t.strictSame(there, names.slice(at + 1 - there.length, at + 1), 'the newest are there')
  }
  t.ok(kept().length >= 8, 'and no more go than an eighth of the quota')
  t.ok(othersAreWhole(), 'others lose nothing')
  await made(evicted)
  t.strictSame([...new Set(evicted.kinds)], ['quota'])
  t.strictSame([...new Set(evicted.of)], [flooding.identity])
  t.strictSame(faults, [])
})

void t.test(
  'documents, objects and lists count together, and so do rows without bodies of their own',
  async (t) => {
    const { store, othersAreWhole } = await start(t.testdir())
    await using _ = store
    const document = { ...version(flooding), path: '/openapi/v2' }
    await store.putDocument(document, { mediaType: 'json', body: Buffer.alloc(300_000) })
    await store.put(keyOf('a', { partition: flooding }), pod, large('a', 1, 300_000))
    await replace(store, listOf(flooding, 'all'), head(5), pods(300, 1, 1_000))
    t.ok(store.document(document))
    // The same objects: their bodies are kept once, and each list has rows of its own.
    const lists = Array.from({ length: 10 }, (_, at) => listOf(flooding, `app=${at}`))
    for (const key of lists) await replace(store, key, head(5), pods(300, 1, 1_000))
    await until('the oldest to go', () => !store.document(document) && !store.list(lists[0]!))
    t.equal(got(store, keyOf('a', { partition: flooding })), undefined)
    t.equal(listed(store, lists.at(-1)!)?.length, 300)
    t.ok(othersAreWhole())
  },
)

void t.test('lists and documents of one caller are bounded by number, too', async (t) => {
  const directory = t.testdir()
  const { store, othersAreWhole } = await start(directory, { maxBytes: 16 << 20 })
  await using _ = store
  const lists = Array.from({ length: 2_050 }, (_, at) => listOf(flooding, `app=${at}`))
  const documents = Array.from({ length: 1_050 }, (_, at) => ({
    ...version(flooding),
    path: `/apis/${at}`,
  }))
  for (let at = 0; at < lists.length; at += 50)
    await Promise.all(lists.slice(at, at + 50).map((key) => replace(store, key, head(5))))
  for (let at = 0; at < documents.length; at += 50)
    await Promise.all(
      documents
        .slice(at, at + 50)
        .map((key) => store.putDocument(key, { mediaType: 'json', body: Buffer.from('d') })),
    )
  using db = database(directory)
  const there = (table: string): number => count(db, table)
  await until('the oldest to go', () => {
    return there('collection') <= 2_002 && there('document') <= 1_002
  })
  t.ok(there('collection') > 1_500)
  t.ok(there('document') > 800)
  t.ok(store.list(lists.at(-1)!))
  t.ok(store.document(documents.at(-1)!))
  t.notOk(store.list(lists[0]!))
  t.notOk(store.document(documents[0]!))
  t.ok(othersAreWhole())
})

void t.test('objects and events of watches count toward the quota', async (t) => {
  const { store, evicted, othersAreWhole } = await start(t.testdir())
  await using _ = store
  const keys = Array.from({ length: 12 }, (_, at) => listOf(flooding, `app=${at}`))
  for (const [at, key] of keys.entries()) {
    const name = `watched-${at}`
    await replace(store, key, head(100), [large(name, 1, 50_000)])
    await store.apply(key, [
      changed('MODIFIED', large(name, 101, 50_000)),
      changed('MODIFIED', large(name, 102, 50_000)),
    ])
  }
  await made(evicted)
  t.notOk(store.list(keys[0]!), 'the oldest went')
  t.ok(store.list(keys.at(-1)!))
  t.ok(othersAreWhole())
})

void t.test('a flood does not outrun it', async (t) => {
  const { store, evicted, othersAreWhole } = await start(t.testdir(), { maxBytes: 16 << 20 })
  await using _ = store
  const floods = Array.from({ length: 60 }, async (_, at) => {
    const key = listOf(flooding, `app=${at}`)
    await replace(store, key, head(1e6), pods(1_000, 1_000 * at, 300)).catch(() => undefined)
    const document = { ...version(flooding), path: `/apis/${at}` }
    await store.putDocument(document, { mediaType: 'json', body: Buffer.alloc(200_000) })
    await store.put(keyOf(`o-${at}`, { partition: flooding }), pod, large(`o-${at}`))
  })
  await Promise.all(floods)
  await made(evicted)
  t.strictSame([...new Set(evicted.kinds)], ['quota'], 'the database was never near to its size')
  t.ok(othersAreWhole())
  t.strictSame(faults, [])
})

void t.test(
  'lists on their way take no more than a quota, and the rest passes unrecorded',
  async (t) => {
    const { store, othersAreWhole } = await start(t.testdir())
    await using _ = store
    const begin = async (partition: Partition, at: number) => {
      const replacement = store.replace(listOf(partition, `app=${at}`))
      await replacement.add({ objects: pods(1_000, 1 + 1_000 * at, 100) })
      return replacement
    }
    const begun = await Promise.allSettled([0, 1, 2, 3, 4, 5].map((at) => begin(flooding, at)))
    t.strictSame(
      begun.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
    )
    await using ofOther = await begin(other, 1)
    await ofOther.commit(head(5_000))
    for (const [at, each] of begun.entries()) {
      if (each.status === 'rejected') t.match(each.reason, { code: 'STORE_FAILURE' })
      else await (at === 0 ? each.value.commit(head(5_000)) : each.value[Symbol.asyncDispose]())
    }
    t.equal(listed(store, listOf(flooding, 'app=0'))?.length, 1_000)
    await using next = await begin(flooding, 6)
    await next.commit(head(9_000))
    t.equal(listed(store, listOf(flooding, 'app=6'))?.length, 1_000, 'there is room for the next')
    t.ok(othersAreWhole())
    t.strictSame(faults, [], 'which is nothing wrong with the store')
  },
)

void t.test('records of an earlier run count when their caller writes again', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    for (let at = 0; at < 15; at += 1)
      await store.put(keyOf(`o-${at}`, { partition: flooding }), pod, large(`o-${at}`))
  }
  const { store, evicted, othersAreWhole } = await start(directory)
  await using _ = store
  await store.put(keyOf('another', { partition: flooding }), pod, object('another', 1))
  await made(evicted)
  t.equal(got(store, keyOf('another', { partition: flooding })), 'another at 1')
  t.equal(got(store, keyOf('o-0', { partition: flooding })), undefined)
  t.ok(got(store, keyOf('o-14', { partition: flooding })))
  t.ok(othersAreWhole())
})
