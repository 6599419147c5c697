import t from 'tap'
import * as resources from '../../../../src/api/kube/resources.ts'
import type { GVR } from '../../../../src/api/kube/gvk.ts'
import { nodeIdentity, sharedIdentity, tokenHolder } from '../../../../src/api/request/identity.ts'
import type { EvictedKind } from '../../../../src/hub/store/sqlite/messages.ts'
import type {
  Partition,
  CollectionKey,
  ObjectStore,
  StoreFailure,
} from '../../../../src/hub/store/store.ts'
import { tokenResource } from '../../../../src/hub/store/token-name.ts'
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
import { count, database, referencedBodies, open, pods, faults, turn, writersOf } from './opened.ts'
import { until } from '../../../kit/until.ts'

t.beforeEach(() => faults.splice(0))

const maxBytes = 4 << 20
const gvr = (group: string, resource: string) => ({ group, version: 'v1', resource })
const asNode: Partition = { identity: nodeIdentity, representation: json }
const asToken: Partition = { identity: tokenHolder('x'), representation: json }
const atConsole: Partition = { ...asNode, evictFirst: true }

const of = {
  pods: collection(),
  secrets: collection({ gvr: gvr('', 'secrets') }),
  shared: collection({
    partition: { identity: sharedIdentity, representation: json },
    gvr: gvr('', 'services'),
  }),
  console: collection({ partition: atConsole, gvr: gvr('apps', 'deployments') }),
  consoleSecrets: collection({
    partition: { ...atConsole, representation: 'json;table;v1;Metadata' as typeof json },
    gvr: gvr('', 'secrets'),
  }),
  leftOver: collection({ gvr: gvr('apps', 'daemonsets') }),
  token: collection({ partition: asToken, gvr: gvr('', 'services') }),
} satisfies Record<string, CollectionKey>

type Name = keyof typeof of
const names = Object.keys(of) as Name[]
const isNeeded = (name: Name): boolean => ['pods', 'secrets', 'shared'].includes(name)

const documents = {
  discovery: { identity: nodeIdentity, path: '/apis/apps/v1?hash=1', representation: '' },
  openapi: { identity: nodeIdentity, path: '/openapi/v3', representation: '' },
}

const strayed = keyOf('stray', { gvr: gvr('', 'events') })

/** A little of everything. */
async function keepAll(store: ObjectStore): Promise<void> {
  for (const name of names) await replace(store, of[name], head(500), pods(20, 1, 2_000))
  await store.put(keyOf('own'), pod, object('own', 501))
  await store.put(strayed, pod, object('stray', 1, { bytes: Buffer.alloc(2_000) }))
  for (const key of Object.values(documents)) {
    await store.putDocument(key, { mediaType: 'text/plain', body: Buffer.alloc(2_000) })
  }
}

/** Growth that is needed, so that all else has to go for it; until it is refused, or so much. */
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
    // Room is made between the writes.
    for (let i = 0; i < 5; i += 1) await turn()
  }
  return true
}

const left = (store: ObjectStore): Name[] => names.filter((name) => store.list(of[name]))

void t.test(
  'near to its size the least needed goes first, and what boots the node never',
  async (t) => {
    const directory = t.testdir()
    const order: EvictedKind[] = []
    await using store = await open(directory, {
      maxBytes,
      onEvicted: (counts) => order.push(...counts.keys()),
    })
    await keepAll(store)
    await grow(store, 1 << 20)
    t.strictSame(left(store), names, 'as long as there is room nothing goes')
    t.strictSame(order, [])
    t.notOk(await grow(store, 2 * maxBytes, 5_000), 'what no room can be made for is refused')
    t.strictSame(left(store), names.filter(isNeeded))
    t.strictSame([...new Set(order)], ['passing', 'document', 'object', 'collection'])
    t.ok(store.document(documents.discovery))
    t.notOk(store.document(documents.openapi))
    t.equal(store.get(strayed), undefined)
    t.equal(got(store, keyOf('own')), 'own at 501')
    for (const name of ['pods', 'secrets', 'shared'] as const)
      t.equal(listed(store, of[name])?.length, 20)
    t.ok(faults.includes('write'))
    using db = database(directory)
    t.equal(count(db, 'collection WHERE whole = 0'), 0, 'nothing is left of them')
    t.ok(
      count(db, 'body') - count(db, referencedBodies) < 400,
      'nor of their objects, but rows to be used again',
    )
  },
)

void t.test('nothing that the boot verdict asks for goes, in whatever version', async (t) => {
  await using store = await open(t.testdir(), { maxBytes })
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
    t.equal(got(store, keyOf('own', { gvr: each })), 'own at 501', name)
  }
  for (const each of others) t.equal(store.list(collection({ gvr: each })), undefined)
})

/** A Secret as a kubelet follows it. */
const secret = (name: string): CollectionKey =>
  collection({
    gvr: resources.secrets,
    namespace: 'default',
    fieldSelector: `metadata.name=${name}`,
  })

const claim = (name: string) => keyOf(name, { gvr: resources.volumeClaims })

/** Of each name a Secret that is followed, and a claim that was got. */
async function refer(store: ObjectStore, names: readonly string[], size = 10_000): Promise<void> {
  for (const [at, name] of names.entries()) {
    const held = object(name, 100 + at, { bytes: Buffer.alloc(size) })
    await replace(store, secret(name), head(500 + at), [held])
    await store.put(claim(name), pod, held)
  }
}

/** Those of which either is there. */
/**
 * Asks for the newest first: what goes meanwhile, the oldest first, is then missing from the
 * beginning, as after it.
 */
const followed = (store: ObjectStore, names: readonly string[]): string[] =>
  names
    .toReversed()
    .filter((name) => store.list(secret(name)) !== undefined)
    .toReversed()
const kept = (store: ObjectStore, names: readonly string[]): string[] =>
  names.filter((name) => store.get(claim(name)) !== undefined)

const numbered = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${name}-${String(at).padStart(3, '0')}`)

void t.test(
  'objects that no pod refers to go last, oldest first, and no others for want of room',
  async (t) => {
    const directory = t.testdir()
    const order = new Set<EvictedKind>()
    const present = numbered('present', 10)
    const gone = numbered('gone', 100)
    await using store = await open(directory, {
      maxBytes,
      onEvicted: (counts) => [...counts.keys()].forEach((kind) => order.add(kind)),
      referencedObjects: () =>
        present.flatMap((name) => [
          { gvr: resources.secrets, namespace: 'default', name },
          { gvr: resources.volumeClaims, namespace: 'default', name },
        ]),
    })
    await keepAll(store)
    await refer(store, [...present, ...gone])
    const byPods = collection({ gvr: resources.secrets, namespace: 'default' })
    await replace(store, byPods, head(700), [object('in-a-list', 1)])
    const seen: number[] = []
    let from = 1_000
    await until('all of them to go', async () => {
      t.ok(await grow(store, 50_000, from))
      from += 100
      const there = followed(store, gone)
      t.strictSame(there, gone.slice(gone.length - there.length), 'the oldest went')
      seen.push(there.length)
      return there.length === 0
    })
    t.ok(new Set(seen).size > 1, 'not all at once')
    t.strictSame([...order], ['passing', 'document', 'object', 'collection', 'gone'])
    t.notOk(await grow(store, 2 * maxBytes, 50_000))
    t.strictSame(kept(store, gone), [])
    t.strictSame(followed(store, present), present)
    t.strictSame(kept(store, present), present)
    t.strictSame(listed(store, byPods), ['in-a-list at 1'])
    t.strictSame(left(store), names.filter(isNeeded))
  },
)

void t.test('while the referenced objects are unknown, none that pods refer to goes', async (t) => {
  const gone = numbered('gone', 20)
  await using store = await open(t.testdir(), { maxBytes, referencedObjects: () => undefined })
  await refer(store, gone)
  t.notOk(await grow(store, 2 * maxBytes))
  t.strictSame(followed(store, gone), gone)
  t.strictSame(kept(store, gone), gone)
})

void t.test('an eviction that fails by a mistake in the program is reported', async (t) => {
  const reported: StoreFailure[] = []
  const cause = new TypeError('a mistake')
  await using store = await open(t.testdir(), {
    maxBytes,
    report: (kind, failure) => kind === 'maintenance' && reported.push(failure),
    onEvicted: () => {
      throw cause
    },
  })
  await keepAll(store)
  await grow(store, maxBytes)
  await until('the report', () => reported.length > 0)
  t.match(reported[0], { message: 'the maintenance of the store failed', cause })
})

void t.test('an evicted object that is followed again is kept again', async (t) => {
  const gone = numbered('gone', 60)
  let present: readonly string[] = []
  await using store = await open(t.testdir(), {
    maxBytes,
    referencedObjects: () =>
      present.map((name) => ({ gvr: resources.secrets, namespace: 'default', name })),
  })
  await refer(store, gone)
  let from = 1_000
  await until('all of them to go', async () => {
    t.ok(await grow(store, 50_000, from))
    from += 100
    return followed(store, gone).length === 0
  })
  present = gone.slice(0, 1)
  await refer(store, present, 100)
  const [name = ''] = present
  await store.apply(secret(name), [changed('MODIFIED', object(name, 900))])
  t.strictSame(listed(store, secret(name)), [`${name} at 900`])
  await grow(store, 2 * maxBytes, 50_000)
  t.strictSame(followed(store, gone), present)
})

void t.test('a list that is read slowly takes no room from writers', async (t) => {
  await using store = await open(t.testdir(), { maxBytes })
  await replace(store, collection(), head(1_000), pods(600, 1, 1_000))
  const slow = store.list(collection())!.batches[Symbol.iterator]()
  t.equal(slow.next().done, false)
  let refused = 0
  for (let version = 2_000; version < 3_000; version += 1) {
    const busy = object('pod-0001', version, { bytes: Buffer.alloc(10_000) })
    await store.apply(of.pods, [changed('MODIFIED', busy)]).catch(() => (refused += 1))
    await turn()
  }
  t.equal(refused, 0)
  t.strictSame(faults, [])
  t.throws(() => Array.from({ length: 600 }, () => slow.next()), { code: 'STORE_FAILURE' })
  t.equal(listed(store, of.pods)?.length, 600)
})

void t.test('a collection that a program reads, too, is not only a person’s', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory, { maxBytes })
    await replace(store, of.console, head(5), [object('a', 1)])
    await replace(store, { ...of.console, partition: asNode, namespace: 'x' }, head(5), [
      object('a', 1),
    ])
    await replace(store, of.consoleSecrets, head(5), [object('s', 1)])
    await replace(store, of.token, head(5), [object('s', 1)])
    await replace(
      store,
      { ...of.token, partition: { ...asToken, evictFirst: true }, namespace: 'x' },
      head(5),
    )
  }
  using db = database(directory)
  const passing = db.prepare('SELECT resource FROM scope WHERE passing = 1').all()
  t.strictSame(
    passing.map(({ resource }) => resource),
    ['secrets'],
  )
  // Across a restart, too.
  await using store = await open(directory, { maxBytes })
  await replace(
    store,
    { ...of.consoleSecrets, partition: { ...of.consoleSecrets.partition, evictFirst: false } },
    head(6),
  )
  t.equal(count(db, 'scope WHERE passing = 1'), 0)
})

void t.test('callers absent for longest are evicted before those in use', async (t) => {
  await using store = await open(t.testdir(), { maxBytes })
  const ofToken = (hash: string): CollectionKey =>
    collection({ partition: { identity: tokenHolder(hash), representation: json } })
  for (const hash of ['oldest', 'older', 'present']) {
    await replace(store, ofToken(hash), head(500), pods(100, 1, 5_000))
  }
  for (const day of [1, 2, 3, 4]) {
    await store.sweep(day)
    store.list(ofToken('present'))
    if (day < 3) store.list(ofToken('older'))
    await turn()
  }
  const there = (): string[] =>
    ['oldest', 'older', 'present'].filter((hash) => store.list(ofToken(hash)))
  const seen = new Set<string>()
  for (let from = 1_000; from < 20_000 && there().length > 0; from += 100) {
    seen.add(there().join())
    if (!(await grow(store, 100_000, from))) break
  }
  t.strictSame([...seen], ['oldest,older,present', 'older,present', 'present'])
})

void t.test('an evicted collection is never seen in part, nor is a list built on it', async (t) => {
  const writers = writersOf(t)
  const directory = t.testdir()
  await using store = await open(directory, { maxBytes })
  using db = database(directory)
  await replace(store, of.console, head(5_000), pods(900, 1, 1_000))
  await using incoming = store.replace(of.console)
  await incoming.add({ objects: pods(900, 1, 1_000) })
  const seen: number[] = []
  let isGoing = true
  writers[0]!.on('message', () => {
    if (!isGoing) return
    const before = seen.at(-1)
    const now = count(db, 'member')
    if (now !== before) seen.push(now)
    const found = listed(store, of.console)?.length
    if (found !== undefined && found !== 900) t.fail(`${found} of 900`)
  })
  await grow(store, maxBytes)
  isGoing = false
  t.equal(store.list(of.console), undefined)
  t.ok(seen.length > 3)
  for (const [at, now] of seen.entries()) {
    t.ok((seen[at - 1] ?? now) - now <= 250, `${seen[at - 1]} to ${now} in one step`)
  }
  await t.rejects(incoming.commit(head(5_001)), { code: 'STORE_FAILURE' })
  t.equal(store.list(of.console), undefined)
  await replace(store, of.console, head(5_002), [object('a', 1)])
  t.strictSame(listed(store, of.console), ['a at 1'])
})

void t.test('within a kind the heaviest caller gives first, until it is not', async (t) => {
  await using store = await open(t.testdir(), { maxBytes })
  const ofToken = (hash: string): Partition => ({
    identity: tokenHolder(hash),
    representation: json,
  })
  const sizes = { heavy: 40, light: 2, lighter: 1 }
  const hashes = Object.keys(sizes) as (keyof typeof sizes)[]
  const keys = hashes.flatMap((hash) =>
    Array.from({ length: sizes[hash] }, (_, at) =>
      keyOf(`of-${hash}-${at}`, { partition: ofToken(hash) }),
    ),
  )
  // What the heaviest has is the newest, and of each caller objects and lists.
  for (const key of keys.toReversed()) {
    const held = object(key.name, 1, { bytes: Buffer.alloc(12_000) })
    await store.put(key, pod, held)
    const { partition, name } = key
    const list = collection({ partition, fieldSelector: `metadata.name=${name}` })
    await replace(store, list, head(5), [held])
  }
  const objects = (hash: string): number =>
    keys
      .filter(({ name }) => name.startsWith(`of-${hash}-`))
      .filter((key) => store.names(key.partition, key.gvr).some(({ name }) => name === key.name))
      .length
  const lists = (hash: string): number =>
    keys
      .filter(({ name }) => name.startsWith(`of-${hash}-`))
      .filter(({ partition, name }) =>
        store.list(collection({ partition, fieldSelector: `metadata.name=${name}` })),
      ).length
  let from = 1_000
  for (; lists('heavy') === 40; from += 100) if (!(await grow(store, 50_000, from))) break
  t.strictSame([objects('light'), objects('lighter')], [0, 0], 'single objects went before')
  t.strictSame([lists('light'), lists('lighter')], [2, 1])
  for (; lists('light') === 2; from += 100) if (!(await grow(store, 20_000, from))) break
  t.ok(lists('heavy') <= 2, `${lists('heavy')} of the heaviest were left`)
  // The store goes on evicting while this reads: what is read first is the more there is.
  const lighter = lists('lighter')
  t.ok(lighter === 1 || lists('light') <= 1, 'the lightest went with the last of all others')
})
