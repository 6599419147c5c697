import type { Test } from 'tap'
import type { ListBatch } from '../../src/api/codec/list.ts'
import type { WatchEvent } from '../../src/api/codec/watch.ts'
import type { GVK } from '../../src/api/kube/gvk.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import type { RepresentationKey } from '../../src/api/request/representation.ts'
import { nodeIdentity, tokenHolder, type Identity } from '../../src/api/request/identity.ts'
import { documentAt, documentResource, putDocument } from '../../src/hub/store/document.ts'
import type {
  Partition,
  CollectionHead,
  CollectionKey,
  ObjectKey,
  ObjectStore,
  StoredList,
} from '../../src/hub/store/store.ts'

export const json = 'json' as RepresentationKey
const protobuf = 'protobuf' as RepresentationKey
const podList: GVK = { group: '', version: 'v1', kind: 'PodList' }
export const pod: GVK = { group: '', version: 'v1', kind: 'Pod' }

const asNode: Partition = { identity: nodeIdentity, representation: json }

/** All pods, unless told otherwise. */
export const collection = (with_: Partial<CollectionKey> = {}): CollectionKey => ({
  partition: asNode,
  gvr: { group: '', version: 'v1', resource: 'pods' },
  labelSelector: '',
  fieldSelector: '',
  ...with_,
})

export const keyOf = (name: string, with_: Partial<ObjectKey> = {}): ObjectKey => ({
  partition: asNode,
  gvr: { group: '', version: 'v1', resource: 'pods' },
  namespace: 'default',
  name,
  ...with_,
})

/** An object whose bytes say which version of it this is. */
export const object = (
  name: string,
  resourceVersion: number | string,
  with_: Partial<ApiObject> = {},
): ApiObject => ({
  namespace: 'default',
  name,
  uid: `uid of ${name}`,
  resourceVersion: String(resourceVersion),
  bytes: Buffer.from(`${name} at ${resourceVersion}`),
  ...with_,
})

export const head = (
  resourceVersion: number | string,
  with_: Partial<CollectionHead> = {},
): CollectionHead => ({
  gvk: podList,
  resourceVersion: String(resourceVersion),
  extra: '',
  ...with_,
})

export const changed = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject): WatchEvent => ({
  type,
  object,
})

export const bookmark = (resourceVersion: number | string): WatchEvent => ({
  type: 'BOOKMARK',
  resourceVersion: String(resourceVersion),
  initialEventsEnd: false,
})

export async function replace(
  store: ObjectStore,
  key: CollectionKey,
  of: CollectionHead,
  ...batches: readonly (readonly ApiObject[])[]
): Promise<void> {
  await using replacement = store.replace(key)
  for (const objects of batches) await replacement.add({ objects })
  await replacement.commit(of)
}

/** What the bytes of the objects say, in their order. */
export const texts = (objects: readonly (ApiObject | undefined)[]): (string | undefined)[] =>
  objects.map((object) => object && Buffer.from(object.bytes).toString())

export const objectsOf = ({ batches }: Pick<StoredList, 'batches'>): ApiObject[] =>
  [...batches].flatMap(({ objects }) => objects)

export function listed(store: ObjectStore, key: CollectionKey): (string | undefined)[] | undefined {
  const list = store.list(key)
  return list && texts(objectsOf(list))
}

export function got(store: ObjectStore, key: ObjectKey): string | undefined {
  const found = store.get(key)
  return typeof found === 'object' ? Buffer.from(found.object.bytes).toString() : found
}

/**
 * What any store of objects promises. `open` opens the one that lies in `directory`, which is empty
 * at first.
 */
export function objectStoreContract(
  t: Test,
  open: (directory: string) => Promise<ObjectStore>,
): void {
  const promise = (sentence: string, show: (t: Test, store: ObjectStore) => Promise<void>): void =>
    void t.test(sentence, async (t) => {
      await using store = await open(t.testdir())
      await show(t, store)
    })

  promise('an unlisted collection is no empty list', async (t, store) => {
    t.equal(store.list(collection()), undefined)
    await replace(store, collection(), head(7))
    const list = store.list(collection())
    t.match(list, { gvk: podList, resourceVersion: '7', extra: '' })
    t.strictSame(listed(store, collection()), [])
  })

  promise('a write that changes nothing waits for earlier commits', async (t, store) => {
    await replace(store, collection(), head(7), [object('a', 1)])
    void store.apply(collection(), [changed('MODIFIED', object('a', 8))])
    await store.apply(collection(), [bookmark(8)])
    t.equal(store.version(collection()), '8', 'a bookmark')
    const older = store.replace(collection())
    const newer = replace(store, collection(), head(10), [])
    await older.add({ objects: [] })
    await older.commit(head(9))
    t.equal(store.version(collection()), '10', 'an older list')
    await newer
    await store.apply(collection(), [changed('ADDED', object('a', 11))])
    void store.apply(collection(), [changed('DELETED', object('a', 12))])
    await replace(store, collection(), head(12))
    t.equal(store.version(collection()), '12', 'a list of the same')
  })

  promise('a list is sorted by namespace and name, and keeps its metadata', async (t, store) => {
    const elsewhere = object('a', 3, { namespace: 'aside' })
    const extra = '"remainingItemCount":1'
    const before = Date.now()
    await replace(
      store,
      collection(),
      head(9, { extra }),
      [object('b', 2), object('a', 1)],
      [elsewhere],
    )
    const list = store.list(collection())!
    t.equal(list.extra, extra)
    t.ok(list.confirmedAt >= before)
    t.strictSame(
      objectsOf(list).map((each) => ({ ...each, bytes: String(Buffer.from(each.bytes)) })),
      [
        { ...elsewhere, bytes: 'a at 3' },
        { ...object('a', 1), bytes: 'a at 1' },
        { ...object('b', 2), bytes: 'b at 2' },
      ],
    )
  })

  promise('a list is read of the wanted objects alone', async (t, store) => {
    await replace(store, collection(), head(9), [object('a', 1), object('b', 2)])
    const seen: string[] = []
    const list = store.list(collection(), ({ name, uid, version }) => {
      seen.push(`${name} ${uid} ${version}`)
      return version === '2'
    })
    const { uid } = object('a', 1)
    t.strictSame(seen, [`a ${uid} 1`, `b ${object('b', 2).uid} 2`])
    t.strictSame(list && texts(objectsOf(list)), ['b at 2'])
  })

  promise('a new list replaces the old one atomically', async (t, store) => {
    await replace(store, collection(), head(3), [object('a', 1), object('b', 2), object('c', 3)])
    await replace(store, collection(), head(6), [object('a', 1), object('b', 5), object('d', 6)])
    t.strictSame(listed(store, collection()), ['a at 1', 'b at 5', 'd at 6'])
    t.equal(store.list(collection())?.resourceVersion, '6')
  })

  promise('a staged list that is not committed changes nothing', async (t, store) => {
    await replace(store, collection(), head(2), [object('a', 1), object('b', 2)])
    {
      await using replacement = store.replace(collection())
      await replacement.add({ objects: [object('a', 5), object('z', 6)] })
      t.strictSame(listed(store, collection()), ['a at 1', 'b at 2'])
      t.equal(got(store, keyOf('a')), 'a at 1', 'what is staged is not seen')
      t.equal(got(store, keyOf('z')), 'absent')
    }
    t.strictSame(listed(store, collection()), ['a at 1', 'b at 2'])
    t.equal(store.list(collection())?.resourceVersion, '2')
  })

  promise('an open list is a snapshot while it is replaced', async (t, store) => {
    const big = (version: number): ApiObject[] =>
      Array.from({ length: 40 }, (_, index) =>
        object(`pod-${String(index).padStart(2, '0')}`, version + index, {
          bytes: Buffer.alloc(30_000, String(version)),
        }),
      )
    await replace(store, collection(), head(199), big(100))
    const batches = store.list(collection())!.batches[Symbol.iterator]()
    const first = batches.next().value as ListBatch
    t.ok(first.objects.length < 40, 'it comes in runs')
    await replace(store, collection(), head(299), big(200))
    await replace(store, collection(), head(399), big(300))
    await store.put(keyOf('other'), pod, object('other', 400))
    const read = [...first.objects]
    for (let next = batches.next(); !next.done; next = batches.next())
      read.push(...next.value.objects)
    t.strictSame(new Set(read.map(({ bytes }) => bytes[0])), new Set([0x31]))
    t.equal(read.length, 40)
  })

  promise(
    'identities, encodings, GVRs, namespaces and selectors are kept apart',
    async (t, store) => {
      const keys = [
        collection(),
        collection({ namespace: 'default' }),
        collection({ labelSelector: 'app=a' }),
        collection({ fieldSelector: 'spec.nodeName=n' }),
        collection({ partition: { identity: nodeIdentity, representation: protobuf } }),
        collection({ partition: { identity: tokenHolder('x'), representation: json } }),
        collection({ gvr: { group: '', version: 'v1', resource: 'nodes' } }),
        collection({ gvr: { group: 'x', version: 'v1', resource: 'pods' } }),
      ]
      for (const [index, key] of keys.entries()) {
        const name = `of-${index}`
        await replace(store, key, head(index + 1), [object(name, index + 1)])
      }
      keys.forEach((key, index) =>
        t.strictSame(listed(store, key), [`of-${index} at ${index + 1}`], `collection ${index}`),
      )
      t.equal(
        store.get(
          keyOf('of-4', { partition: { identity: tokenHolder('x'), representation: json } }),
        ),
        'absent',
      )
      t.equal(
        store.get(
          keyOf('of-4', { partition: { identity: tokenHolder('y'), representation: json } }),
        ),
        undefined,
      )
    },
  )

  promise('a get returns the newest of single record and collection members', async (t, store) => {
    t.equal(store.get(keyOf('a')), undefined)
    await store.put(keyOf('a'), pod, object('a', 9))
    t.match(store.get(keyOf('a')), { gvk: pod, object: { resourceVersion: '9' } })
    await replace(store, collection(), head(20), [object('a', 10)])
    t.equal(got(store, keyOf('a')), 'a at 10', 'longer is newer')
    await replace(store, collection({ labelSelector: 'x' }), head(21), [object('a', 8)])
    t.equal(got(store, keyOf('a')), 'a at 10')
    await store.put(keyOf('a'), pod, object('a', 11))
    t.equal(got(store, keyOf('a')), 'a at 11')
  })

  promise('of two answers without a version in one turn the later counts', async (t, store) => {
    const answer = (name: string, text: string): ApiObject =>
      object(name, 1, { resourceVersion: '', bytes: Buffer.from(`{"metadata":{},"is":"${text}"}`) })
    const [no, yes] = [answer('a', 'denied'), answer('a', 'allowed')]
    await store.put(keyOf('a'), pod, no)
    await Promise.all([yes, no].map((each) => store.put(keyOf('a'), pod, each)))
    t.match(store.get(keyOf('a')), { object: { bytes: no.bytes } })
  })

  promise('what is held is the same version, byte for byte, for its reader', async (t, store) => {
    const a = object('a', 9)
    t.equal(store.holds(keyOf('a'), a), false)
    await store.put(keyOf('a'), pod, a)
    t.equal(store.holds(keyOf('a'), a), true)
    const other = Buffer.from(a.bytes)
    other.writeUInt8(other.readUInt8(0) ^ 1)
    t.equal(store.holds(keyOf('a'), { ...a, bytes: other }), false, 'other bytes')
    t.equal(store.holds(keyOf('a'), object('a', 8)), false, 'an older version')
    t.equal(store.holds(keyOf('b'), object('b', 9)), false, 'another object')
    const partition = { identity: tokenHolder('x'), representation: json }
    t.equal(store.holds(keyOf('a', { partition }), a), false, 'another reader')
    await store.forget(keyOf('a'))
    t.equal(store.holds(keyOf('a'), a), false, 'it was forgotten')
  })

  promise('a single record is absent once a newer list lacks it', async (t, store) => {
    await store.put(keyOf('p'), pod, object('p', 5))
    await replace(store, collection(), head(10), [object('q', 3)])
    t.equal(store.get(keyOf('p')), 'absent')
    await store.put(keyOf('p'), pod, object('p', 11))
    t.equal(got(store, keyOf('p')), 'p at 11', 'but it is if it is newer than the list')
    await store.apply(collection(), [bookmark(12)])
    t.equal(store.get(keyOf('p')), 'absent', 'a watch would have sent it')
  })

  promise('a newer list by name or namespace makes a record absent', async (t, store) => {
    for (const key of [
      collection({ namespace: 'default' }),
      collection({ fieldSelector: 'metadata.name=p' }),
      collection({ namespace: 'default', fieldSelector: 'metadata.name=p' }),
    ]) {
      const partition = { identity: tokenHolder(JSON.stringify(key)), representation: json }
      await store.put(keyOf('p', { partition }), pod, object('p', 5))
      await replace(store, { ...key, partition }, head(10))
      t.equal(store.get(keyOf('p', { partition })), 'absent')
    }
    await store.put(keyOf('p'), pod, object('p', 5))
    await replace(store, collection({ namespace: 'other' }), head(10))
    await replace(store, collection({ fieldSelector: 'metadata.name=other' }), head(10))
    await replace(store, collection({ labelSelector: 'app=x' }), head(10))
    t.equal(got(store, keyOf('p')), 'p at 5', 'others say nothing of it')
  })

  promise('a list that drops an object deletes its single record', async (t, store) => {
    const key = collection({ fieldSelector: 'spec.nodeName=n' })
    await replace(store, key, head(11), [object('r', 11), object('s', 9)])
    await store.put(keyOf('r'), pod, object('r', 11))
    await store.put(keyOf('s'), pod, object('s', 20))
    await replace(store, key, head(13))
    t.equal(store.get(keyOf('r')), undefined, 'it may only no longer match')
    t.equal(got(store, keyOf('s')), 's at 20', 'unless that is newer than the list')
  })

  promise(
    'a list drops records by its own version, not by that of events in the meantime',
    async (t, store) => {
      const key = collection({ fieldSelector: 'spec.nodeName=n' })
      await replace(store, key, head(5), [object('r', 3)])
      await store.put(keyOf('r'), pod, object('r', 12))
      {
        await using replacement = store.replace(key)
        await store.apply(key, [changed('ADDED', object('x', 13))])
        await replacement.commit(head(10))
      }
      t.equal(got(store, keyOf('r')), 'r at 12')
    },
  )

  promise('an object that another collection confirmed later stays', async (t, store) => {
    const selected = collection({ labelSelector: 'app=x' })
    await replace(store, collection(), head(10))
    await replace(store, selected, head(9), [object('r', 8)])
    t.equal(store.get(keyOf('r')), 'absent')
    await replace(store, selected, head(20), [object('r', 8)])
    t.equal(got(store, keyOf('r')), 'r at 8')
    await store.put(keyOf('r'), pod, object('r', 8))
    t.equal(got(store, keyOf('r')), 'r at 8', 'a record of the same version does not date it back')
    await replace(store, collection({ labelSelector: 'app=y' }), head(30))
    t.equal(got(store, keyOf('r')), 'r at 8')
    await replace(store, collection(), head(21))
    t.equal(store.get(keyOf('r')), undefined, 'it may have been selected since, and left')
    await replace(store, collection(), head(30))
    t.equal(store.get(keyOf('r')), 'absent')
  })

  promise('partitions() finds a resource’s objects of all identities', async (t, store) => {
    const { gvr, partition } = keyOf('a')
    t.strictSame(store.partitions(gvr), [])
    await store.put(keyOf('single'), pod, object('single', 3))
    await replace(store, collection(), head(5), [object('a', 1)])
    const other = { ...partition, identity: tokenHolder('other') }
    await replace(store, { ...collection(), partition: other }, head(7), [object('b', 2)])
    const found = store
      .partitions(gvr)
      .map((each) => [
        each.partition.identity,
        each.names.map(({ name }) => name),
        each.collections.map(({ resourceVersion }) => resourceVersion),
      ])
    t.strictSame(found, [
      [partition.identity, ['a', 'single'], ['5']],
      [other.identity, ['b'], ['7']],
    ])
    t.strictSame(store.partitions({ ...gvr, version: 'v2' }), [])
  })

  promise('forget() deletes the record of one partition', async (t, store) => {
    await store.forget(keyOf('a'))
    t.equal(store.get(keyOf('a')), undefined)
    await store.put(keyOf('a'), pod, object('a', 5))
    await store.forget(
      keyOf('a', { partition: { identity: nodeIdentity, representation: protobuf } }),
    )
    t.equal(got(store, keyOf('a')), 'a at 5', 'of its partition only')
    await store.forget(keyOf('a'))
    t.equal(store.get(keyOf('a')), undefined)
    await store.put(keyOf('a'), pod, object('a', 5))
    t.equal(got(store, keyOf('a')), 'a at 5', 'until it is put again')
  })

  promise('a forgotten object is still in lists, but not in gets', async (t, store) => {
    const other = collection({ labelSelector: 'app=x' })
    await replace(store, collection(), head(10), [object('a', 5), object('b', 6)])
    await replace(store, other, head(10), [object('a', 5)])
    await store.put(keyOf('a'), pod, object('a', 5))
    await store.forget(keyOf('a'))
    t.equal(store.get(keyOf('a')), undefined)
    t.equal(got(store, keyOf('b')), 'b at 6')
    t.strictSame(listed(store, collection()), ['a at 5', 'b at 6'])
    await store.apply(collection(), [
      bookmark(11),
      changed('MODIFIED', object('a', 4)),
      changed('MODIFIED', object('b', 12)),
    ])
    t.equal(store.get(keyOf('a')), undefined, 'nothing brought it')
    t.strictSame(
      texts(await store.apply(collection(), [changed('DELETED', object('a', 13))])),
      ['a at 5'],
      'the collection goes by its own watch',
    )
    t.equal(store.get(keyOf('a')), undefined, 'and not by what another one holds')
  })

  promise('a put, an event or a list restores a forgotten object', async (t, store) => {
    const all = [object('a', 5), object('b', 6), object('c', 7), object('d', 8)]
    await replace(store, collection(), head(10), all)
    for (const name of ['a', 'b', 'c', 'd']) await store.forget(keyOf(name))
    await store.put(keyOf('a'), pod, object('a', 5))
    t.equal(got(store, keyOf('a')), 'a at 5')
    await store.apply(collection(), [changed('MODIFIED', object('b', 11))])
    t.equal(got(store, keyOf('b')), 'b at 11')
    await store.apply(collection(), [changed('ADDED', object('c', 7))])
    t.equal(got(store, keyOf('c')), 'c at 7')
    t.equal(store.get(keyOf('d')), undefined)
    await replace(store, collection(), head(12), [...all.slice(2), object('b', 11)])
    t.equal(got(store, keyOf('d')), 'd at 8')
    t.equal(store.get(keyOf('a')), 'absent')
    await store.forget(keyOf('d'))
    await replace(store, collection(), head(12), [...all.slice(2), object('b', 11)])
    t.equal(got(store, keyOf('d')), 'd at 8', 'by the same list, too')
  })

  promise('a put issued after a forget follows it', async (t, store) => {
    await store.put(keyOf('a'), pod, object('a', 5))
    await Promise.all([store.forget(keyOf('a')), store.put(keyOf('a'), pod, object('a', 5))])
    t.equal(got(store, keyOf('a')), 'a at 5')
  })

  promise('members of a list have the kind of the list', async (t, store) => {
    await replace(store, collection(), head(2), [object('a', 1)])
    t.match(store.get(keyOf('a')), { gvk: pod })
  })

  promise('only a collection that covers a name answers absent', async (t, store) => {
    await replace(store, collection({ labelSelector: 'app=x' }), head(1))
    await replace(store, collection({ fieldSelector: 'spec.nodeName=n' }), head(1))
    await replace(store, collection({ fieldSelector: 'metadata.name=other' }), head(1))
    await replace(store, collection({ namespace: 'elsewhere' }), head(1))
    t.equal(store.get(keyOf('a')), undefined)
    await replace(
      store,
      collection({ namespace: 'default', fieldSelector: 'metadata.name=a' }),
      head(2),
    )
    t.equal(store.get(keyOf('a')), 'absent')
    await replace(store, collection({ fieldSelector: String.raw`metadata.name=a\=b` }), head(2))
    t.equal(store.get(keyOf('a=b')), 'absent', 'a role may be named so')
    t.equal(store.get(keyOf('b')), undefined)
    await replace(store, collection({ namespace: 'default' }), head(3))
    t.equal(store.get(keyOf('b')), 'absent')
    t.equal(store.get(keyOf('b', { namespace: 'other' })), undefined)
    await replace(store, collection(), head(4))
    t.equal(store.get(keyOf('b', { namespace: 'other' })), 'absent')
  })

  promise('a version older than the stored one is ignored', async (t, store) => {
    await store.put(keyOf('a'), pod, object('a', 10))
    await store.put(keyOf('a'), pod, object('a', 9))
    t.equal(got(store, keyOf('a')), 'a at 10')
    await replace(store, collection(), head(20), [object('b', 15)])
    await store.put(keyOf('b'), pod, object('b', 14))
    t.equal(got(store, keyOf('b')), 'b at 15')
    await store.apply(collection(), [
      changed('MODIFIED', object('b', 13)),
      changed('DELETED', object('b', 14)),
    ])
    t.equal(got(store, keyOf('b')), 'b at 15')
    t.equal(store.list(collection())?.resourceVersion, '20')
  })

  promise('a stale DELETED event does not keep its object in the next list', async (t, store) => {
    await replace(store, collection(), head(20), [object('a', 10), object('b', 15)])
    await store.apply(collection(), [changed('DELETED', object('b', 14))])
    await replace(store, collection(), head(30), [object('a', 10)])
    t.strictSame(listed(store, collection()), ['a at 10'])
  })

  promise('if versions do not compare, the last write wins', async (t, store) => {
    await store.put(keyOf('a'), pod, object('a', 'x2'))
    await store.put(keyOf('a'), pod, object('a', 'x1'))
    t.equal(got(store, keyOf('a')), 'a at x1')
    const noVersion = (text: string): ApiObject => object('r', '', { bytes: Buffer.from(text) })
    for (const text of ['first', 'second']) {
      await replace(store, collection(), head(5), [noVersion(text)])
      t.strictSame(listed(store, collection()), [text])
    }
  })

  promise('events apply in order and return the previous objects', async (t, store) => {
    await replace(store, collection(), head(3), [object('a', 1), object('b', 2)])
    const previous = await store.apply(collection(), [
      changed('MODIFIED', object('a', 4)),
      changed('ADDED', object('c', 5)),
      bookmark(6),
      changed('MODIFIED', object('a', 7)),
      changed('DELETED', object('b', 8)),
      changed('DELETED', object('gone', 9)),
      { type: 'ERROR', status: { kind: 'Status', apiVersion: 'v1', metadata: {} } as never },
    ])
    t.strictSame(texts(previous), [
      'a at 1',
      undefined,
      undefined,
      'a at 4',
      'b at 2',
      undefined,
      undefined,
    ])
    t.strictSame(listed(store, collection()), ['a at 7', 'c at 5'])
    t.equal(store.list(collection())?.resourceVersion, '9')
    t.equal(store.get(keyOf('b')), 'absent')
  })

  promise('previous: false returns no previous objects', async (t, store) => {
    await replace(store, collection(), head(3), [object('a', 1), object('b', 2)])
    const events = [changed('MODIFIED', object('a', 4)), changed('DELETED', object('b', 5))]
    const previous = await store.apply(collection(), events, { previous: false })
    t.strictSame(previous, [undefined, undefined])
    t.strictSame(listed(store, collection()), ['a at 4'])
  })

  promise(
    'events accepted before earlier ones are committed still follow them',
    async (t, store) => {
      await replace(store, collection(), head(1), [object('a', 1)])
      const applied = [2, 3, 4].map((version) =>
        store.apply(collection(), [changed('MODIFIED', object('a', version))]),
      )
      t.strictSame((await Promise.all(applied)).flatMap(texts), ['a at 1', 'a at 2', 'a at 3'])
    },
  )

  promise('a lagging watch restores no deleted object', async (t, store) => {
    await replace(store, collection(), head(100), [object('x', 90), object('y', 91)])
    await store.apply(collection(), [changed('MODIFIED', object('x', 103))])
    await store.apply(collection(), [
      changed('MODIFIED', object('y', 104)),
      changed('DELETED', object('x', 105)),
    ])
    const previous = await store.apply(collection(), [
      changed('MODIFIED', object('x', 103)),
      changed('MODIFIED', object('y', 104)),
    ])
    t.strictSame(texts(previous), [undefined, undefined], 'what was before is not known here')
    t.strictSame(listed(store, collection()), ['y at 104'])
    t.equal(store.get(keyOf('x')), 'absent')
    t.equal(store.list(collection())?.resourceVersion, '105')
    await store.apply(collection(), [
      changed('DELETED', object('x', 105)),
      changed('ADDED', object('x', 106)),
    ])
    t.strictSame(listed(store, collection()), ['x at 106', 'y at 104'], 'where it catches up')
  })

  promise('a watch from before a restore changes no collection', async (t, store) => {
    await replace(store, collection(), head(106), [object('a', 90), object('b', 106)])
    await store.drop()
    await replace(store, collection(), head(101), [object('a', 90)])
    t.equal(store.list(collection())?.resourceVersion, '101')
    const ahead = [changed('MODIFIED', object('a', 107)), bookmark(108)]
    t.strictSame(await store.apply(collection(), ahead, { since: '106' }), [undefined, undefined])
    t.strictSame(listed(store, collection()), ['a at 90'])
    t.equal(store.list(collection())?.resourceVersion, '101')
    {
      await using replacement = store.replace(collection())
      await store.apply(collection(), ahead, { since: '106' })
      await replacement.add({ objects: [object('a', 90), object('c', 102)] })
      await replacement.commit(head(102))
    }
    t.strictSame(listed(store, collection()), ['a at 90', 'c at 102'])
    await store.apply(collection(), [changed('MODIFIED', object('a', 103))], { since: '102' })
    t.strictSame(listed(store, collection()), ['a at 103', 'c at 102'], 'its own watch does')
  })

  promise(
    'what left a selection keeps the record of the state in which it left',
    async (t, store) => {
      const selected = collection({ labelSelector: 'app=x' })
      await replace(store, selected, head(5), [object('a', 3)])
      await store.put(keyOf('a'), pod, object('a', 6))
      for (const again of [false, true]) {
        await store.apply(selected, [changed('DELETED', object('a', 7))], { since: '5' })
        t.equal(got(store, keyOf('a')), again ? 'a at 7' : undefined)
        await store.put(keyOf('a'), pod, object('a', 7))
        t.equal(got(store, keyOf('a')), 'a at 7')
      }
    },
  )

  promise('drop() removes all, and a list in progress is not committed', async (t, store) => {
    const token = { identity: tokenHolder('t'), representation: protobuf }
    await replace(store, collection(), head(9), [object('a', 3), object('b', 4)])
    await store.put(keyOf('c', { partition: token }), pod, object('c', 5))
    const half = store.replace(collection())
    await half.add({ objects: [object('a', 3), object('d', 6)] })
    await store.drop()
    t.equal(store.list(collection()), undefined)
    for (const key of [keyOf('a'), keyOf('c', { partition: token })])
      t.equal(store.get(key), undefined)
    await t.rejects(half.commit(head(10)), { code: 'STORE_FAILURE' })
    t.equal(store.list(collection()), undefined)
    await replace(store, collection(), head(2), [object('a', 1)])
    t.equal(store.version(collection()), '2', 'an older one is taken')
  })

  promise('withdraw() removes what an identity is refused, and nothing else', async (t, store) => {
    const { gvr } = collection()
    const [robot, other] = [tokenHolder('x'), tokenHolder('y')]
    const of = (identity: Identity, namespace?: string, fieldSelector = '') =>
      collection({
        partition: { identity, representation: json },
        ...(namespace !== undefined && { namespace }),
        fieldSelector,
      })
    const named = of(robot, 'default', 'metadata.name=a')
    const all = [of(robot), of(robot, 'default'), of(robot, 'elsewhere'), named, of(other)]
    for (const key of all) await replace(store, key, head(10), [object('a', 1)])
    const record = keyOf('a', { partition: { identity: robot, representation: json } })
    await store.put(record, pod, object('a', 11))
    await store.withdraw(robot, { of: 'collections', gvr, namespace: 'default' })
    t.strictSame(
      all.map((key) => store.version(key)),
      [undefined, undefined, '10', '10', '10'],
    )
    t.equal(got(store, record), 'a at 11')
    await store.withdraw(robot, { of: 'objects', gvr, namespace: 'default', name: 'b' })
    t.equal(got(store, record), 'a at 11')
    await store.withdraw(robot, {
      of: 'objects',
      gvr: { ...gvr, version: 'v2' },
      namespace: 'default',
    })
    t.equal(got(store, record), 'a at 1', 'of the collection that it may still read')
    await store.withdraw(robot, { of: 'collections', gvr, namespace: 'default', name: 'a' })
    t.equal(store.version(named), undefined)
    t.equal(store.get(record), undefined)
  })

  promise('a list in progress of what is refused is not committed', async (t, store) => {
    const { gvr } = collection()
    const ofOther = collection({
      partition: { identity: tokenHolder('x'), representation: json },
    })
    for (const isFirst of [true, false]) {
      await using refused = store.replace(collection())
      await using other = store.replace(ofOther)
      for (const each of [refused, other]) await each.add({ objects: [object('a', 1)] })
      await store.withdraw(nodeIdentity, { of: 'collections', gvr, namespace: '' })
      await t.rejects(refused.commit(head(7)), { code: 'STORE_FAILURE' })
      t.equal(store.version(collection()), undefined)
      await other.commit(head(isFirst ? 7 : 8))
      t.equal(store.version(ofOther), isFirst ? '7' : '8', 'of another it is')
      await replace(store, collection(), head(8), [object('a', 1)])
      t.equal(store.version(collection()), '8', 'and a later one')
    }
  })

  promise('collections() lists the committed ones that apply, with RVs', async (t, store) => {
    const found = (namespace?: string) =>
      store
        .collections(collection().partition, collection().gvr, namespace)
        .map(({ key, resourceVersion }) => [
          key.namespace,
          key.labelSelector,
          key.fieldSelector,
          resourceVersion,
        ])
        .toSorted((a, b) => (String(a) < String(b) ? -1 : 1))
    t.strictSame(found('default'), [])
    await replace(store, collection(), head(5))
    await replace(store, collection({ namespace: 'default', labelSelector: 'x' }), head(6))
    await replace(store, collection({ namespace: 'other' }), head(7))
    await replace(store, collection({ fieldSelector: 'metadata.name=a' }), head(8))
    await replace(
      store,
      collection({ partition: { identity: nodeIdentity, representation: protobuf } }),
      head(9),
    )
    await store.apply(collection(), [bookmark(10)])
    {
      await using replacement = store.replace(collection({ labelSelector: 'given-up' }))
      await replacement.add({ objects: [object('a', 1)] })
    }
    const ofAll = [
      [undefined, '', '', '10'],
      [undefined, '', 'metadata.name=a', '8'],
    ]
    t.strictSame(found(), ofAll)
    t.strictSame(found('default'), [...ofAll, ['default', 'x', '', '6']])
    t.strictSame(found('none'), ofAll)
  })

  promise('a bookmark moves the version forward, never back', async (t, store) => {
    await replace(store, collection(), head(5), [object('a', 1)])
    await store.apply(collection(), [bookmark(10)])
    t.equal(store.list(collection())?.resourceVersion, '10')
    await store.apply(collection(), [bookmark(9), bookmark('0'), bookmark('')])
    t.equal(store.list(collection())?.resourceVersion, '10')
    t.strictSame(listed(store, collection()), ['a at 1'])
  })

  promise('a DELETED event deletes the record too', async (t, store) => {
    await store.put(keyOf('a'), pod, object('a', 1))
    const key = collection({ labelSelector: 'app=x' })
    await replace(store, key, head(2), [object('a', 1)])
    await store.apply(key, [changed('DELETED', object('a', 3))])
    t.equal(store.get(keyOf('a')), undefined)
  })

  promise(
    'an object that leaves a selector is neither answered from old state nor absent',
    async (t, store) => {
      const selected = collection({ labelSelector: 'app=x' })
      const named = collection({ namespace: 'default', fieldSelector: 'metadata.name=a' })
      await replace(store, named, head(1))
      await replace(store, collection(), head(2), [object('a', 2), object('b', 2)])
      await replace(store, selected, head(2), [object('a', 2), object('b', 2)])
      await store.apply(selected, [
        changed('DELETED', object('a', 5)),
        changed('DELETED', object('b', 6)),
      ])
      t.equal(store.get(keyOf('a')), undefined)
      t.strictSame(listed(store, collection()), ['a at 2', 'b at 2'], 'a list at its version')
      await store.apply(collection(), [changed('MODIFIED', object('a', 5))])
      t.equal(got(store, keyOf('a')), 'a at 5', 'it only does not match any more')
      await store.apply(collection(), [changed('DELETED', object('b', 6))])
      t.equal(store.get(keyOf('b')), 'absent', 'it is gone')
    },
  )

  promise('an object that a selector’s list drops is not answered either', async (t, store) => {
    const selected = collection({ fieldSelector: 'spec.nodeName=n' })
    await replace(store, collection(), head(3), [object('a', 2), object('b', 3)])
    await replace(store, selected, head(3), [object('a', 2), object('b', 3)])
    await replace(store, selected, head(9))
    t.equal(store.get(keyOf('a')), undefined)
    await store.put(keyOf('a'), pod, object('a', 7))
    t.equal(got(store, keyOf('a')), 'a at 7')
    await replace(store, collection(), head(10), [object('b', 8)])
    t.equal(got(store, keyOf('b')), 'b at 8')
  })

  promise('a DELETED event by name or namespace counts', async (t, store) => {
    for (const key of [
      collection({ namespace: 'default' }),
      collection({ namespace: 'default', fieldSelector: 'metadata.name=a' }),
    ]) {
      await replace(store, collection({ labelSelector: 'app=x' }), head(2), [object('a', 1)])
      await replace(store, key, head(2), [object('a', 1)])
      await store.apply(key, [changed('DELETED', object('a', 5))])
      t.equal(store.get(keyOf('a')), 'absent')
    }
  })

  promise('events create no list, but update single records', async (t, store) => {
    await store.put(keyOf('a'), pod, object('a', 1))
    await store.put(keyOf('b'), pod, object('b', 1))
    const previous = await store.apply(collection(), [
      changed('MODIFIED', object('a', 2)),
      changed('DELETED', object('b', 3)),
      changed('ADDED', object('c', 4)),
      bookmark(5),
    ])
    t.strictSame(previous, [undefined, undefined, undefined, undefined])
    t.equal(store.list(collection()), undefined)
    t.equal(got(store, keyOf('a')), 'a at 2')
    t.equal(store.get(keyOf('b')), undefined)
    t.equal(store.get(keyOf('c')), undefined)
  })

  promise('a list older than events that came meanwhile changes nothing', async (t, store) => {
    await replace(store, collection(), head(4), [object('a', 1), object('b', 2)])
    {
      await using replacement = store.replace(collection())
      await replacement.add({ objects: [object('a', 1), object('b', 5)] })
      await store.apply(collection(), [
        changed('MODIFIED', object('b', 5)),
        changed('DELETED', object('a', 12)),
        changed('ADDED', object('e', 13)),
      ])
      await replacement.commit(head(10))
    }
    t.strictSame(listed(store, collection()), ['b at 5', 'e at 13'])
    t.equal(store.list(collection())?.resourceVersion, '13')
    const previous = await store.apply(collection(), [changed('MODIFIED', object('b', 14))])
    t.strictSame(texts(previous), ['b at 5'])
  })

  promise('a list newer than events that came meanwhile replaces them', async (t, store) => {
    await replace(store, collection(), head(4), [object('a', 1), object('b', 2)])
    {
      await using replacement = store.replace(collection())
      await replacement.add({ objects: [object('a', 1), object('b', 9)] })
      await store.apply(collection(), [changed('MODIFIED', object('b', 5))])
      await replacement.commit(head(10))
    }
    t.strictSame(listed(store, collection()), ['a at 1', 'b at 9'])
    t.equal(store.list(collection())?.resourceVersion, '10')
  })

  promise('an older list committed late does not undo a newer one', async (t, store) => {
    await using older = store.replace(collection())
    await older.add({ objects: [object('a', 1), object('b', 2)] })
    await replace(store, collection(), head(20), [object('a', 15)])
    await older.commit(head(10))
    t.strictSame(listed(store, collection()), ['a at 15'])
    t.equal(store.list(collection())?.resourceVersion, '20')
  })

  promise('a collection has the versions of its last change and list', async (t, store) => {
    const changedAt = (): string | undefined => store.list(collection())?.changedAt
    await replace(store, collection(), head(3), [object('a', 1)])
    await store.apply(collection(), [bookmark(4)])
    t.equal(changedAt(), '3')
    await store.apply(collection(), [changed('MODIFIED', object('a', 5)), bookmark(6)])
    await store.apply(collection(), [changed('MODIFIED', object('a', 4)), bookmark(7)])
    t.equal(changedAt(), '5')
    await replace(store, collection(), head(8), [object('a', 5)])
    t.equal(changedAt(), '5')
    t.equal(store.list(collection())?.listedAt, '8', 'what came and went before is not known')
    await replace(store, collection(), head(9))
    t.equal(changedAt(), '9')
  })

  promise('confirmedAt is when the upstream last sent it', async (t, store) => {
    const confirmed = (name: string): number => {
      const found = store.get(keyOf(name))
      return typeof found === 'object' ? found.confirmedAt : 0
    }
    const before = Date.now()
    await store.put(keyOf('a'), pod, object('a', 5))
    const first = confirmed('a')
    t.ok(first >= before, 'when it was put')
    await replace(store, collection(), head(6), [object('a', 5), object('b', 6)])
    const list = store.list(collection())!
    t.equal(confirmed('b'), list.confirmedAt, 'as the collection that holds it')
    t.equal(confirmed('a'), list.confirmedAt, 'whatever said it last')
    await store.put(keyOf('a'), pod, object('a', 7))
    t.ok(confirmed('a') >= list.confirmedAt, 'another state is younger')
    await store.apply(collection(), [bookmark(9)])
    t.match(store.get(keyOf('a')), { confirmedVersion: '7' })
    t.match(store.get(keyOf('b')), { confirmedVersion: '9' }, 'as far as its collection is')
  })

  promise('a document is an object without a version', async (t, store) => {
    const key = documentAt(nodeIdentity, '/openapi/v3', 'application/json')
    for (const text of ['one', 'another']) {
      await putDocument(store, key, 'application/json', Buffer.from(text))
      t.match(store.get(key), { object: { uid: 'application/json' } })
      t.equal(got(store, key), text)
    }
    t.equal(store.get(documentAt(nodeIdentity, '/openapi/v3', '*/*')), undefined)
    const [found] = store.partitions(documentResource, nodeIdentity)
    t.match(found?.names, [{ name: '/openapi/v3' }])
    t.ok(found?.names[0]?.confirmedAt)
    t.strictSame(store.partitions(documentResource, tokenHolder('x')), [])
  })

  void t.test('committed data is there after reopening', async (t) => {
    const directory = t.testdir()
    {
      await using store = await open(directory)
      await replace(store, collection(), head(3, { extra: '"x":1' }), [
        object('a', 1),
        object('b', 2),
      ])
      await store.apply(collection(), [changed('MODIFIED', object('a', 4)), bookmark(8)])
      await store.put(
        keyOf('s', { namespace: 'other' }),
        pod,
        object('s', 15, { namespace: 'other' }),
      )
      await putDocument(
        store,
        documentAt(nodeIdentity, '/api', ''),
        'text/plain',
        Buffer.from('api'),
      )
    }
    await using store = await open(directory)
    t.match(store.list(collection()), { gvk: podList, resourceVersion: '8', extra: '"x":1' })
    t.strictSame(listed(store, collection()), ['a at 4', 'b at 2'])
    t.equal(store.list(collection())?.changedAt, '4')
    t.equal(got(store, keyOf('s', { namespace: 'other' })), 's at 15')
    t.match(store.get(keyOf('s', { namespace: 'other' })), { gvk: pod })
    t.equal(got(store, documentAt(nodeIdentity, '/api', '')), 'api')
    t.strictSame(texts(await store.apply(collection(), [changed('DELETED', object('a', 9))])), [
      'a at 4',
    ])
  })

  void t.test('writes accepted before closing are committed, later ones rejected', async (t) => {
    const directory = t.testdir()
    const store = await open(directory)
    const accepted = Array.from({ length: 50 }, (_, index) =>
      store.put(keyOf(`p-${index}`), pod, object(`p-${index}`, index + 1)),
    )
    const closed = store[Symbol.asyncDispose]()
    await t.rejects(store.put(keyOf('late'), pod, object('late', 1)), { code: 'STORE_FAILURE' })
    await Promise.all([...accepted, closed])
    await t.rejects(replace(store, collection(), head(1), [object('a', 1)]), {
      code: 'STORE_FAILURE',
    })
    t.equal(store.get(keyOf('p-1')), undefined)
    await store[Symbol.asyncDispose]()
    await using again = await open(directory)
    t.equal(got(again, keyOf('p-49')), 'p-49 at 50')
    t.equal(again.get(keyOf('late')), undefined)
  })

  promise('names with any characters stay apart', async (t, store) => {
    const odd = [
      object('b/c', 1, { namespace: 'a' }),
      object('c', 2, { namespace: 'a/b' }),
      object("'; DROP TABLE object; --", 3, { namespace: '\u0000"' }),
    ]
    await replace(store, collection(), head(4), odd)
    t.strictSame(new Set(listed(store, collection())), new Set(texts(odd)))
    await replace(store, collection(), head(5), odd.slice(0, 2))
    t.equal(listed(store, collection())?.length, 2)
  })
}
