import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { at, objectOf, type Client, type Watching } from '../kit/client.ts'
import {
  allServices,
  nodeName,
  pod,
  pods,
  podsOfNode,
  service,
  services,
  type CloudServer,
} from '../kit/cloud.ts'
import {
  startOnlineHub,
  goOnline,
  goOffline,
  startCloud,
  type TestHub,
  type TestHubOptions,
} from '../kit/hub.ts'
import {
  bucketResource,
  defineBuckets,
  definePools,
  nodePool,
  poolResource,
  putIntoPool,
} from '../kit/node-pools.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
const allSlices = '/apis/discovery.k8s.io/v1/endpointslices'
const pools = poolResource('v1beta2')

const everywhere = ['edge-1', 'edge-2', 'edge-3']

const annotated = (topology: string | undefined): JsonObject => {
  const plain = service('web', '10.96.0.7') as { metadata: JsonObject }
  if (topology === undefined) return plain
  const annotations = { 'openyurt.io/topologyKeys': topology }
  return { ...plain, metadata: { ...plain.metadata, annotations } }
}

const slice: JsonObject = {
  metadata: {
    name: 'web-1',
    namespace: 'default',
    labels: { 'kubernetes.io/service-name': 'web' },
  },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  endpoints: everywhere.map((node, at) => ({ addresses: [`10.244.${at}.2`], nodeName: node })),
}

/** A service whose endpoints are on three nodes, and are wanted of the node's pool. */
async function cloudWithTopology(t: Teardown, topology = 'openyurt.io/nodepool') {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, annotated(topology))
  cloud.sandbox.create(slices, slice)
  return cloud
}

/** The same, with two pools of which the node is in the first. */
async function cloudWithPools(t: Teardown): Promise<CloudServer> {
  const cloud = await cloudWithTopology(t)
  definePools(cloud, 'v1beta2')
  cloud.sandbox.create(pools, nodePool('hangzhou', ['edge-3', 'edge-1']))
  cloud.sandbox.create(pools, nodePool('beijing', ['edge-2']))
  putIntoPool(cloud, 'hangzhou')
  return cloud
}

async function started(
  t: Teardown,
  cloud: CloudServer,
  options: Partial<TestHubOptions> = {},
): Promise<TestHub> {
  const hub = await startOnlineHub(t, { upstreams: [cloud], ...options })
  return hub
}

/** The nodes of the endpoints in a slice. */
const nodesOf = (slice: Json | undefined): unknown[] =>
  ((at(slice, 'endpoints') ?? []) as readonly JsonObject[]).map(({ nodeName: node }) => node)

/** The nodes of the endpoints that a client is shown. */
async function shownTo(client: Client): Promise<unknown[]> {
  const answer = await client.get(allSlices)
  return answer.status === 200 ? nodesOf(at(objectOf(answer), 'items', 0)) : [answer.status]
}

/** Resolves once a client is shown these; each look is an answer of its own. */
async function untilShown(client: Client, nodes: readonly string[]): Promise<void> {
  let shown: unknown
  const describe = (): unknown => shown
  await until(
    `endpoints on ${nodes.join(', ')}`,
    async () => isDeepStrictEqual((shown = await shownTo(client)), nodes),
    { describe },
  )
}

const isOf =
  (resource: string) =>
  ({ path }: SeenRequest): boolean =>
    path.endsWith(`/${resource}`)

const isOwn = ({ headers }: SeenRequest): boolean =>
  String(headers['user-agent']).startsWith('nodehub/')

void t.test('from its first request on a component gets the endpoints of its pool', async (t) => {
  const cloud = await cloudWithPools(t)
  const hub = await started(t, cloud)
  const proxy = hub.as('kube-proxy')
  t.strictSame(await shownTo(proxy), ['edge-1', 'edge-3'])
  t.strictSame(await shownTo(hub.as('somebody')), everywhere)
  t.notMatch(await hub.readyz(), /filters/)
})

const oneSlice = `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1`

void t.test('the first request may be a get or a write', async (t) => {
  const asked = {
    get: {},
    write: {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/merge-patch+json' },
      body: '{"metadata":{"labels":{"patched":"yes"}}}',
    },
  }
  for (const [what, how] of Object.entries(asked)) {
    const cloud = await cloudWithPools(t)
    // What filters need comes in pieces, and late.
    cloud.sandbox.faults.delay(100, isOf('nodepools'))
    const hub = await started(t, cloud)
    const answer = await hub.as('kube-proxy').send(oneSlice, how)
    t.strictSame(nodesOf(objectOf(answer)), ['edge-1', 'edge-3'], what)
  }
})

void t.test(
  'where the hub may not read its own node filters do without, and it reports that',
  async (t) => {
    const cloud = await cloudWithPools(t)
    cloud.sandbox.authorize(({ resource }) => resource !== 'nodes')
    const hub = await started(t, cloud)
    const proxy = (): Client => hub.as('kube-proxy')
    await untilShown(proxy(), everywhere)
    t.equal((await proxy().get(allServices)).status, 200)
    t.match(await hub.readyz(), /\[ \]filters cannot read nodes: .*\(403\)/)
    await goOffline(cloud, hub)
    await hub.restart()
    t.strictSame(await shownTo(proxy()), everywhere, 'after a restart without a link, too')
    cloud.sandbox.authorize(() => true)
    await goOnline(cloud, hub)
    await untilShown(proxy(), ['edge-1', 'edge-3'])
    t.notMatch(await hub.readyz(), /filters/)
  },
)

void t.test(
  'new pods are withheld while propagation needs a Node that may not be read',
  async (t) => {
    const cloud = await cloudWithPools(t)
    cloud.sandbox.authorize(({ resource }) => resource !== 'nodes')
    cloud.sandbox.create(pods, pod('web'))
    const hub = await started(t, cloud, {
      flags: ['--plain-proxy=true', '--host-network-propagation=on'],
    })
    await untilShown(hub.as('kube-proxy'), everywhere)
    t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, [])
  },
)

void t.test('a Node that does not exist yet delays no request', async (t) => {
  const cloud = await cloudWithTopology(t)
  const hub = await started(t, cloud, { flags: ['--plain-proxy=true', '--node-name=edge-9'] })
  await untilShown(hub.as('kube-proxy'), everywhere)
  t.match(await hub.readyz(), /\[ \]filters know nothing of Node edge-9: there is none/)
})

void t.test(
  'the hub reads its own node and its own pool, and of the node only metadata',
  async (t) => {
    const cloud = await cloudWithPools(t)
    const hub = await started(t, cloud)
    await shownTo(hub.as('kube-proxy'))
    await cloud.sandbox.untilWatches(1, isOf('nodepools'))
    await cloud.sandbox.untilWatches(1, isOf('nodes'))
    const own = cloud.sandbox.requests.filter(isOwn)
    const selectors = (resource: string): Set<unknown> =>
      new Set(own.filter(isOf(resource)).map(({ query }) => query.get('fieldSelector')))
    t.strictSame(selectors('nodepools'), new Set(['metadata.name=hangzhou']))
    t.strictSame(selectors('nodes'), new Set([`metadata.name=${nodeName}`]))
    for (const { headers } of own.filter(isOf('nodes'))) {
      t.match(headers['accept'], /as=PartialObjectMetadata/)
    }
  },
)

void t.test('a pool without nodes in its status takes no endpoints away', async (t) => {
  const cloud = await cloudWithTopology(t)
  definePools(cloud, 'v1beta2')
  const unfilled = { metadata: { name: 'hangzhou' }, spec: { type: 'Edge' } }
  cloud.sandbox.create(pools, unfilled)
  putIntoPool(cloud, 'hangzhou')
  const hub = await started(t, cloud)
  const proxy = hub.as('kube-proxy')
  t.strictSame(await shownTo(proxy), everywhere)
  cloud.sandbox.update(pools, nodePool('hangzhou', ['edge-3']))
  await untilShown(proxy, ['edge-1', 'edge-3'])
  t.pass('and this node is in it before its status says so')
})

void t.test(
  'a running watch gets the effect of a pool or an annotation, though no slice has changed',
  async (t) => {
    const cloud = await cloudWithPools(t)
    const hub = await started(t, cloud)
    const proxy = hub.as('kube-proxy')
    await untilShown(proxy, ['edge-1', 'edge-3'])
    let version = ''
    const watching = async (): Promise<Watching> => {
      version = (await proxy.list(allSlices)).resourceVersion
      return proxy.watch(allSlices, { resourceVersion: version })
    }
    const becomes = async (watch: Watching, nodes: readonly string[]): Promise<void> => {
      t.match(await watch.next(), { type: 'ERROR', object: { code: 410 } })
      await untilShown(proxy, nodes)
    }
    const first = await watching()
    cloud.sandbox.update(pools, nodePool('hangzhou', ['edge-2']))
    await becomes(first, ['edge-1', 'edge-2'])
    const second = await watching()
    // What another account was shown is not known: its client has to list.
    const token = cloud.sandbox.token('kube-proxy')
    const stranger = hub.as('kube-proxy', { token })
    const unlisted = await stranger.watch(allSlices, { resourceVersion: version })
    t.match(await unlisted.next(), { type: 'ERROR', object: { code: 410 } })
    await hub.logged('a client has to list again')
    cloud.sandbox.update(services, annotated('kubernetes.io/hostname'))
    await becomes(second, ['edge-1'])
    const third = await watching()
    cloud.sandbox.update(services, annotated(undefined))
    await becomes(third, everywhere)
    const edited = 'nodehub_filter_decisions_total{filter="servicetopology",result="edited"}'
    t.ok((await hub.metric(edited)) > 0)
  },
)

void t.test('the former pool holds while the NodePool of the new one cannot be read', async (t) => {
  const cloud = await cloudWithPools(t)
  const hub = await started(t, cloud)
  const proxy = hub.as('kube-proxy')
  await untilShown(proxy, ['edge-1', 'edge-3'])
  const { resourceVersion } = await proxy.list(allSlices)
  const watch = await proxy.watch(`${allSlices}?timeout=60s`, { resourceVersion })
  const isOfBeijing = ({ path, query }: SeenRequest): boolean =>
    path.endsWith('/nodepools') && query.get('fieldSelector') === 'metadata.name=beijing'
  {
    using _failing = cloud.sandbox.faults.fail(500, isOfBeijing)
    putIntoPool(cloud, 'beijing')
    // The first failure is known to the hub before it tries again.
    for (let tries = 0; tries < 2; tries++) await cloud.sandbox.nextRequest(isOfBeijing)
    t.strictSame(await shownTo(proxy), ['edge-1', 'edge-3'])
    cloud.touch(slices, 'web-1', 'default')
    t.strictSame(nodesOf((await watch.next())?.object), ['edge-1', 'edge-3'])
  }
  await untilShown(proxy, ['edge-1', 'edge-2'])
})

void t.test('filters keep their inputs offline, and after a restart without a link', async (t) => {
  const cloud = await cloudWithPools(t)
  const hub = await started(t, cloud)
  const proxy = (): Client => hub.as('kube-proxy')
  await untilShown(proxy(), ['edge-1', 'edge-3'])
  await goOffline(cloud, hub)
  t.strictSame(await shownTo(proxy()), ['edge-1', 'edge-3'])
  cloud.sandbox.update(pools, nodePool('hangzhou', ['edge-1']))
  await hub.restart()
  t.strictSame(await shownTo(proxy()), ['edge-1', 'edge-3'])
  await goOnline(cloud, hub)
  await untilShown(proxy(), ['edge-1'])
})

void t.test(
  'where NodePools may not be read all endpoints are shown, and it is reported',
  async (t) => {
    const cloud = await cloudWithPools(t)
    cloud.sandbox.authorize(({ resource }) => resource !== 'nodepools')
    const hub = await started(t, cloud)
    const proxy = hub.as('kube-proxy')
    await untilShown(proxy, everywhere)
    t.match(
      await hub.readyz(),
      /\[ \]filters cannot read nodepools\.apps\.openyurt\.io: .*\(403\), nodehub manifests --part rbac has the right/,
    )
    t.equal((await hub.ops.get('/readyz')).status, 200)
    const missing = 'nodehub_filter_input_missing{resource="nodepools",reason="forbidden"}'
    t.equal(await hub.metric(missing), 1)
    const said = hub.lines.filter((line) => line.includes('filters cannot read nodepools'))
    t.equal(said.length, 1)
    cloud.sandbox.authorize(() => true)
    hub.hub.reconfigure(hub.config)
    await untilShown(proxy, ['edge-1', 'edge-3'])
    t.notMatch(await hub.readyz(), /filters/)
    t.equal(await hub.metric(missing), 0)
    cloud.sandbox.authorize(({ resource }) => resource !== 'nodepools')
    cloud.sandbox.endWatches(isOf('nodepools'))
    await hub.logs(
      () => hub.lines.filter((line) => line.includes('filters cannot read nodepools')).length > 1,
    )
    t.strictSame(await shownTo(proxy), ['edge-1', 'edge-3'], 'what was known last stays')
  },
)

void t.test('NodePools may be installed later', async (t) => {
  const cloud = await cloudWithTopology(t)
  putIntoPool(cloud, 'hangzhou')
  const hub = await started(t, cloud)
  const proxy = hub.as('kube-proxy')
  await untilShown(proxy, everywhere)
  t.match(
    await hub.readyz(),
    /\[ \]filters cannot read nodepools\.apps\.openyurt\.io: .*CustomResourceDefinition is missing \(404\)/,
  )
  t.equal(await hub.metric('nodehub_filter_input_missing{resource="nodepools",reason="absent"}'), 1)
  definePools(cloud, 'v1beta2')
  hub.hub.reconfigure(hub.config)
  await hub.logged('filters know nothing of NodePool hangzhou: there is none')
  t.strictSame(await shownTo(proxy), everywhere)
  cloud.sandbox.create(pools, nodePool('hangzhou', ['edge-3']))
  await untilShown(proxy, ['edge-1', 'edge-3'])
  t.notMatch(await hub.readyz(), /filters/)
})

void t.test('older versions of NodePools are read where there is no other', async (t) => {
  for (const version of ['v1beta1', 'v1alpha1']) {
    const cloud = await cloudWithTopology(t)
    definePools(cloud, version)
    cloud.sandbox.create(poolResource(version), nodePool('hangzhou', ['edge-2']))
    putIntoPool(cloud, 'hangzhou')
    const hub = await started(t, cloud)
    await untilShown(hub.as('kube-proxy'), ['edge-1', 'edge-2'])
    t.pass(version)
    t.notMatch(await hub.readyz(), /filters/)
  }
})

void t.test('the pool is the one the operator names, and never the desired one', async (t) => {
  const cloud = await cloudWithPools(t)
  const named = await started(t, cloud, { flags: ['--nodepool-name=beijing'] })
  await untilShown(named.as('kube-proxy'), ['edge-1', 'edge-2'])
  putIntoPool(cloud, undefined, { 'apps.openyurt.io/desired-nodepool': 'beijing' })
  const wishing = await started(t, cloud)
  await untilShown(wishing.as('kube-proxy'), ['edge-1'])
  t.strictSame(await shownTo(wishing.as('kube-proxy')), ['edge-1'])
})

void t.test('NodeBuckets can name the nodes of a pool', async (t) => {
  const cloud = await cloudWithPools(t)
  defineBuckets(cloud)
  const bucket = (name: string, pool: string, ...members: readonly string[]): JsonObject => ({
    metadata: { name, labels: { 'openyurt.io/pool-name': pool } },
    numNodes: members.length,
    nodes: members.map((member) => ({ name: member })),
  })
  const hub = await started(t, cloud, { flags: ['--enable-pool-service-topology'] })
  const proxy = hub.as('kube-proxy')
  await untilShown(proxy, everywhere)
  t.pass('without a bucket the nodes are not known')
  cloud.sandbox.create(bucketResource, bucket('a', 'hangzhou', 'edge-2'))
  cloud.sandbox.create(bucketResource, bucket('b', 'hangzhou', 'edge-3'))
  cloud.sandbox.create(bucketResource, bucket('c', 'beijing', 'edge-1'))
  await untilShown(proxy, everywhere)
  cloud.sandbox.delete(bucketResource, 'a')
  await untilShown(proxy, ['edge-1', 'edge-3'])
})

void t.test('NodePools can be left unread', async (t) => {
  const cloud = await cloudWithPools(t)
  const hub = await started(t, cloud, { flags: ['--enable-node-pool=false'] })
  await untilShown(hub.as('kube-proxy'), everywhere)
  t.strictSame(cloud.sandbox.requests.filter(isOf('nodepools')), [])
  putIntoPool(cloud, undefined)
  await hub.stop()
  await hub.start()
  t.strictSame(await shownTo(hub.as('kube-proxy')), everywhere, 'in no pool, too')
})
