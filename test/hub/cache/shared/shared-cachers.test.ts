import t from 'tap'
import { at, nameOf, type Client, type Watching } from '../../../kit/client.ts'
import type { ReceivedEvent } from '../../../kit/client-watch.ts'
import { allServices, configMaps, service, services, type CloudServer } from '../../../kit/cloud.ts'
import { startCloud } from '../../../kit/hub.ts'
import { startHubParts } from '../../../kit/hub-parts.ts'
import { until } from '../../../kit/until.ts'
import type { GVR } from '../../../../src/api/kube/gvk.ts'
import { newestVersionIn } from '../../../../src/hub/store/log/versions.ts'
import type { CollectionKey, ObjectStore } from '../../../../src/hub/store/store.ts'
import { sharedIdentity } from '../../../../src/api/request/identity.ts'
import type { SeenRequest } from '../../../../src/sandbox/requests.ts'

const isWatch = ({ query, path }: SeenRequest): boolean =>
  path === allServices && query.get('watch') === 'true'

async function informer(client: Client): Promise<Watching> {
  const { resourceVersion } = await client.list(`${allServices}?resourceVersion=0`)
  return client.watch(allServices, { resourceVersion })
}

const add = (cloud: CloudServer, name: string, octet: number, filling = ''): void => {
  const { metadata, ...rest } = service(name, `10.96.1.${octet}`) as { metadata: object }
  cloud.sandbox.create(services, {
    metadata: { ...metadata, annotations: { 'test.example/filling': filling } },
    ...rest,
  })
}

void t.test('F10: a stuck reader is ended, and the others miss nothing', async (t) => {
  const cloud = await startCloud(t)
  const bounds = { groups: 1_000, bytes: 512 * 1024 }
  const hub = await startHubParts(t, { upstream: cloud, shared: { bounds } })
  const stuck = await informer(hub.as('stuck'))
  const others = [await informer(hub.as('kube-proxy')), await informer(hub.as('coredns'))]
  // More than the sockets between hub and client hold, and what the log keeps.
  const filling = 'x'.repeat(200_000)
  const names: string[] = []
  for (let i = 0; i < 70; i++) {
    names.push(`default/s-${i}`)
    add(cloud, `s-${i}`, i + 1, filling)
    for (const watch of others) {
      const event = await watch.next()
      t.equal(event && nameOf(event.object), names.at(-1))
    }
  }
  const told = (await stuck.rest()).map(({ object }) => nameOf(object))
  t.ok(told.length < names.length, 'it was not kept waiting for')
  t.strictSame(told, names.slice(0, told.length), 'and not lied to')
  t.equal(await stuck.over, 'ended')
  t.strictSame(hub.watchersEnded, ['slow'])
  t.equal(cloud.sandbox.watchCount(isWatch), 1)
  const { resourceVersion } = cloud.sandbox.get(services, `s-${told.length - 1}`, 'default')
    ?.metadata ?? { resourceVersion: '' }
  const [error] = await (await hub.as('stuck').watch(allServices, { resourceVersion })).rest()
  t.match(error, { type: 'ERROR', object: { code: 410 } }, 'its client lists')
})

void t.test('an upstream watch without readers is closed, and later resumed there', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a', 1)
  const hub = await startHubParts(t, { upstream: cloud, shared: { idleMs: 50 } })
  const first = await informer(hub.as('kube-proxy'))
  await cloud.sandbox.untilWatches(1, isWatch)
  first.hangUp()
  await cloud.sandbox.untilWatches(0, isWatch)
  const { version } = cloud.sandbox
  add(cloud, 'b', 2)
  const lists = (): number =>
    cloud.sandbox.requests.filter(
      ({ path, query }) => path === allServices && !query.has('watch') && !query.has('limit'),
    ).length
  const before = lists()
  const second = await hub.as('kube-proxy').watch(allServices, { resourceVersion: version })
  t.match(await second.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
  t.equal(lists(), before, 'nothing is listed again')
})

void t.test('a changed scope ends the readers of one collection and shares another', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a', 1)
  let scope: readonly GVR[] = [services]
  const hub = await startHubParts(t, { upstream: cloud, shared: { scope: () => scope } })
  const watch = await informer(hub.as('kube-proxy'))
  scope = [configMaps]
  hub.shared?.rescope()
  t.equal(await watch.end(), 'ended')
  t.strictSame(hub.watchersEnded, ['over'])
  await cloud.sandbox.untilWatches(0, isWatch)
  const path = '/api/v1/configmaps'
  const { resourceVersion } = await hub.as('a').list(path)
  for (const name of ['a', 'b']) await hub.as(name).watch(path, { resourceVersion })
  t.equal(cloud.sandbox.watchCount(), 1)
})

void t.test('an API server that does not answer reviews delays watches only briefly', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a', 1)
  const hub = await startHubParts(t, { upstream: cloud, shared: {} })
  using _silent = cloud.sandbox.faults.freeze(({ path }) => path.endsWith('reviews'))
  const watches = [await informer(hub.as('kube-proxy')), await informer(hub.as('coredns'))]
  t.equal(cloud.sandbox.watchCount(isWatch), 1, 'of the identity that they have in common')
  add(cloud, 'b', 2)
  for (const watch of watches) t.match(await watch.next(), { type: 'ADDED' })
})

/**
 * The same store, in which changes of what is shared are accepted, and written when `written`
 * resolves.
 */
function writingLater(
  store: ObjectStore,
  isLate: (key: CollectionKey) => boolean,
  onAccepted: () => void,
  written: Promise<void>,
): ObjectStore {
  let accepted: string | undefined
  const accept = async (version: string | undefined): Promise<void> => {
    accepted = version
    onAccepted()
    await written
  }
  const apply: ObjectStore['apply'] = async (key, events, options) => {
    if (isLate(key)) await accept(newestVersionIn(events))
    return store.apply(key, events, options)
  }
  const replace: ObjectStore['replace'] = (key) => {
    const replacement = store.replace(key)
    if (!isLate(key)) return replacement
    return {
      add: (batch) => replacement.add(batch),
      commit: async (head) => {
        await accept(head.resourceVersion)
        await replacement.commit(head)
      },
      [Symbol.asyncDispose]: () => replacement[Symbol.asyncDispose](),
    }
  }
  const version: ObjectStore['version'] = (key) =>
    isLate(key) ? (accepted ?? store.version(key)) : store.version(key)
  return new Proxy(store, {
    get(target, name) {
      if (name === 'apply') return apply
      if (name === 'replace') return replace
      if (name === 'version') return version
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

const isShared = ({ partition }: CollectionKey): boolean => partition.identity === sharedIdentity

void t.test('initial events not older than a version wait until it is written', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a', 1)
  const from = cloud.sandbox.version
  const accepted = Promise.withResolvers<void>()
  const written = Promise.withResolvers<void>()
  const wrap = (store: ObjectStore): ObjectStore =>
    writingLater(store, isShared, accepted.resolve, written.promise)
  const hub = await startHubParts(t, { upstream: cloud, wrap, shared: {} })
  t.teardown(() => written.resolve())
  await informer(hub.as('kube-proxy'))
  await cloud.sandbox.untilWatches(1, isWatch)
  add(cloud, 'b', 2)
  await accepted.promise
  const { version } = cloud.sandbox
  const watch = await hub.as('coredns').watch(allServices, {
    allowWatchBookmarks: 'true',
    resourceVersion: version,
    resourceVersionMatch: 'NotOlderThan',
    sendInitialEvents: 'true',
  })
  const told: ReceivedEvent[] = []
  while (told.at(-1)?.type !== 'BOOKMARK') told.push(...(await watch.take(1)))
  t.strictSame(
    told.map(({ type, object }) => [type, at(object, 'metadata', 'resourceVersion')]),
    [
      ['ADDED', from],
      ['ADDED', version],
      ['BOOKMARK', version],
    ],
  )
})

void t.test(
  'a list that was shared is not older offline while its own record is written',
  async (t) => {
    const cloud = await startCloud(t)
    add(cloud, 'a', 1)
    const accepted = Promise.withResolvers<void>()
    const written = Promise.withResolvers<void>()
    let isHeld = false
    const wrap = (store: ObjectStore): ObjectStore =>
      writingLater(store, (key) => isHeld && !isShared(key), accepted.resolve, written.promise)
    const hub = await startHubParts(t, { upstream: cloud, wrap, shared: {} })
    t.teardown(() => written.resolve())
    const kubeProxy = hub.as('kube-proxy')
    await kubeProxy.list(allServices)
    const all = await informer(hub.as('coredns'))
    add(cloud, 'b', 2)
    await all.next()
    isHeld = true
    const consistent = kubeProxy.list(allServices)
    await accepted.promise
    const names = async () => (await kubeProxy.list(`${allServices}?resourceVersion=0`)).names
    const both = ['default/a', 'default/b']
    t.strictSame(await names(), both)
    await cloud.unplug()
    await until('the hub to be offline', () => hub.cloud.online === false)
    t.strictSame(await names(), both)
    written.resolve()
    t.strictSame((await consistent).names, both)
  },
)
