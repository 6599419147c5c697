import t from 'tap'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import * as resources from '../../../../src/api/kube/resources.ts'
import type { GVR } from '../../../../src/api/kube/gvk.ts'
import { hubIdentity, nodeIdentity, tokenHolder } from '../../../../src/api/request/identity.ts'
import { documentAt, putDocument } from '../../../../src/hub/store/document.ts'
import type { CollectionKey, ObjectStore, Partition } from '../../../../src/hub/store/store.ts'
import { tokenResource } from '../../../../src/hub/store/token-name.ts'
import {
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
import { logFilesIn } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { until } from '../../../kit/until.ts'
import { faults, open, pods } from '../log/opened.ts'

t.beforeEach(() => faults.splice(0))

const maxBytes = 4 << 20
/** Objects of 100 KB after an eviction: one begins at most a segment above seven tenths. */
const most = 34
const gvr = (group: string, resource: string) => ({ group, version: 'v1', resource })
const ofToken = (hash: string): Partition => ({ identity: tokenHolder(hash), representation: json })

const of = {
  pods: collection(),
  secrets: collection({ gvr: gvr('', 'secrets') }),
  ofHub: collection({
    partition: { identity: hubIdentity, representation: json },
    gvr: gvr('', 'services'),
  }),
  leftOver: collection({ gvr: gvr('apps', 'daemonsets') }),
  token: collection({ partition: ofToken('x'), gvr: gvr('', 'services') }),
} satisfies Record<string, CollectionKey>
type Name = keyof typeof of
const names = Object.keys(of) as Name[]
const isNeeded = (name: Name): boolean => ['pods', 'secrets', 'ofHub'].includes(name)
const left = (store: ObjectStore): Name[] => names.filter((name) => store.list(of[name]))

const documents = {
  discovery: documentAt(nodeIdentity, '/apis/apps/v1', ''),
  openapi: documentAt(nodeIdentity, '/openapi/v3', ''),
}

/** Growth that is needed, so that all else has to go for it. Resolves to whether it was taken. */
async function grow(store: ObjectStore, bytes: number, from = 1_000): Promise<boolean> {
  const size = 10_000
  for (let at = 0; at < bytes / size; at += 1) {
    const name = `grown-${from + at}`
    const grown = object(name, from + at, { bytes: Buffer.alloc(size) })
    const taken = await store.put(keyOf(name), pod, grown).then(
      () => true,
      () => false,
    )
    if (!taken) return false
  }
  return true
}

void t.test('near to its size the least needed goes, and what boots the node never', async (t) => {
  const directory = rootFolder(t)
  const evicted: unknown[] = []
  const onEvicted = (...of: unknown[]): unknown => evicted.push(of)
  await using store = await open(directory, { maxBytes, onEvicted })
  for (const name of names) await replace(store, of[name], head(500), pods(20, 1, 2_000))
  await store.put(keyOf('own'), pod, object('own', 501))
  for (const key of Object.values(documents))
    await putDocument(store, key, 'text/plain', Buffer.alloc(2_000))
  await grow(store, 1 << 20)
  t.strictSame(left(store), names, 'as long as there is room nothing goes')
  t.notOk(await grow(store, 2 * maxBytes, 5_000), 'what no room can be made for is refused')
  t.strictSame(left(store), names.filter(isNeeded))
  t.strictSame(evicted, [['old', 41]], 'two collections of 20, and a document')
  t.ok(store.get(documents.discovery))
  t.notOk(store.get(documents.openapi))
  t.equal(got(store, keyOf('own')), 'own at 501')
  for (const name of ['pods', 'secrets', 'ofHub'] as const)
    t.equal(listed(store, of[name])?.length, 20)
  t.ok(faults.includes('write'))
  const size = logFilesIn(join(directory, 'cache')).reduce(
    (sum, each) => sum + statSync(each).size,
    0,
  )
  t.ok(size < 1.1 * maxBytes, `${size} bytes`)
})

/** What pods refer to by name goes before a write of the node is refused. */
const ofPods = new Set([
  'secrets',
  'configmaps',
  'serviceaccounts',
  tokenResource.resource,
  'persistentvolumeclaims',
  'persistentvolumes',
  'resourceclaims',
])

void t.test('nothing that the boot verdict lists goes, in whatever version', async (t) => {
  await using store = await open(rootFolder(t), { maxBytes })
  const older = resources.olderResourceClaimVersions.map((version) => ({
    ...resources.resourceClaims,
    version,
  }))
  const { endpointSlices, customResourceDefinitions, ...askedByName } = resources
  const all = Object.values(askedByName).filter(
    (each): each is GVR => typeof each === 'object' && 'resource' in each,
  )
  const asked = [...all, ...older, tokenResource, gvr('coordination.k8s.io', 'leases')]
  const others = [
    gvr('', 'events'),
    gvr('apps', 'secrets'),
    gvr('', 'endpoints'),
    endpointSlices,
    customResourceDefinitions,
  ]
  for (const each of [...asked, ...others]) {
    await replace(store, collection({ gvr: each }), head(500), pods(3, 1, 1_000))
    await store.put(keyOf('own', { gvr: each }), pod, object('own', 501))
  }
  t.notOk(await grow(store, 2 * maxBytes, 5_000))
  for (const each of asked) {
    const name = `${each.resource}.${each.group}/${each.version}`
    t.equal(listed(store, collection({ gvr: each }))?.length, 3, name)
    const kept = got(store, keyOf('own', { gvr: each }))
    t.equal(kept === 'own at 501', !ofPods.has(each.resource), name)
  }
  for (const each of others) t.equal(store.list(collection({ gvr: each })), undefined)
})

const numbered = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${name}-${String(at).padStart(3, '0')}`)

void t.test('what pods refer to goes last, what was confirmed longest ago first', async (t) => {
  await using store = await open(rootFolder(t), { maxBytes })
  await replace(store, of.pods, head(500), pods(20, 1, 2_000))
  await replace(store, of.leftOver, head(500), pods(20, 1, 2_000))
  const claim = (name: string) => keyOf(name, { gvr: resources.volumeClaims })
  const names = numbered('claim', 60)
  for (const name of names)
    await store.put(claim(name), pod, object(name, 1, { bytes: Buffer.alloc(100_000, name) }))
  const kept = () => names.filter((name) => got(store, claim(name)))
  await until('its oldest to go', () => kept().length < most)
  t.strictSame(kept(), names.slice(-kept().length))
  t.strictSame(left(store), ['pods'])
  t.strictSame(faults, [])
})

void t.test('tokens of pods that are long gone go before what others have listed', async (t) => {
  await using store = await open(rootFolder(t), { maxBytes })
  const token = (name: string) => keyOf(name, { gvr: tokenResource })
  const names = numbered('token', 60)
  const long = { bytes: Buffer.alloc(40_000) }
  mock.timers.enable({ apis: ['Date'], now: Date.now() - 8 * 24 * 3_600_000 })
  for (const name of names) await store.put(token(name), pod, object(name, 1, long))
  mock.timers.reset()
  await replace(store, of.token, head(500), pods(20, 1, 2_000))
  await store.put(token('present'), pod, object('present', 1, long))
  await grow(store, 0.4 * maxBytes)
  await until('a token to go', () => names.some((name) => !got(store, token(name))))
  await store.put(keyOf('own'), pod, object('own', 501))
  t.strictSame(left(store), ['token'])
  t.ok(got(store, token('present')))
})

void t.test('an evicted collection is never seen in part, nor is a list built on it', async (t) => {
  await using store = await open(rootFolder(t), { maxBytes })
  await replace(store, of.leftOver, head(5_000), pods(900, 1, 1_000))
  await using incoming = store.replace(of.leftOver)
  await incoming.add({ objects: pods(900, 1, 1_000) })
  await grow(store, 0.55 * maxBytes)
  await until('it to go', () => !store.list(of.leftOver))
  t.equal(store.list(of.leftOver), undefined)
  await t.rejects(incoming.commit(head(5_001)), { code: 'STORE_FAILURE' })
  t.equal(store.list(of.leftOver), undefined, 'nor is a list built on it')
  await replace(store, of.leftOver, head(5_002), [object('a', 1)])
  t.strictSame(listed(store, of.leftOver), ['a at 1'])
})

void t.test('what was evicted is not absent by an older list, in any encoding', async (t) => {
  const evicted: string[] = []
  const onEvicted = (kind: string): void => void evicted.push(kind)
  const directory = rootFolder(t)
  const lists = collection({ gvr: gvr('', 'configmaps') })
  const record = keyOf('x', { gvr: lists.gvr })
  const protobuf = { identity: nodeIdentity, representation: 'protobuf' as typeof json }
  {
    await using store = await open(directory, { maxBytes, onEvicted })
    await replace(store, lists, head(10), [object('a', 5)])
    await replace(store, { ...lists, partition: protobuf }, head(10), [object('a', 5)])
    await store.put(record, pod, object('x', 11))
    for (let at = 0; at < 400 && evicted.length === 0; at += 1)
      await store.put(
        keyOf(`p-${at}`),
        pod,
        object(`p-${at}`, 100 + at, { bytes: Buffer.alloc(10_000) }),
      )
    t.strictSame(evicted, ['gone'])
    for (const partition of [record.partition, protobuf])
      t.equal(store.get({ ...record, partition }), undefined)
  }
  await using store = await open(directory, { maxBytes })
  t.equal(store.get(record), undefined, 'after a restart')
  await replace(store, lists, head(12), [object('a', 5)])
  t.equal(store.get(record), 'absent', 'a newer one')
})

void t.test('who has most loses its oldest records, and others nothing', async (t) => {
  const others = [ofToken('other'), { identity: nodeIdentity, representation: json }]
  const flooding = ofToken('flooding')
  await using store = await open(rootFolder(t), { maxBytes })
  for (const partition of others)
    await replace(store, collection({ partition }), head(500), pods(5, 1, 20_000))
  const names = numbered('o', 60)
  for (const name of names) {
    const large = object(name, 1, { bytes: Buffer.alloc(100_000, name) })
    await store.put(keyOf(name, { partition: flooding }), pod, large)
  }
  const kept = () => names.filter((name) => got(store, keyOf(name, { partition: flooding })))
  await until('its oldest to go', () => kept().length < most)
  t.strictSame(kept(), names.slice(-kept().length))
  for (const partition of others)
    t.equal(listed(store, collection({ partition }))?.length, 5, partition.identity)
  t.strictSame(faults, [])
})

void t.test('lists on their way take no more than a share', async (t) => {
  await using store = await open(rootFolder(t), { maxBytes })
  const begin = async (at: number) => {
    const key = collection({ partition: ofToken('flooding'), labelSelector: `app=${at}` })
    const replacement = store.replace(key)
    await replacement.add({ objects: pods(1_000, 1 + 1_000 * at, 100) })
    return replacement
  }
  const begun = await Promise.allSettled([0, 1, 2, 3, 4, 5].map(begin))
  t.strictSame(
    begun.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
  )
  for (const each of begun) if (each.status === 'fulfilled') await each.value[Symbol.asyncDispose]()
  await using next = await begin(6)
  await next.commit(head(9_000))
  t.strictSame(faults, [], 'which is nothing wrong with the store')
})
