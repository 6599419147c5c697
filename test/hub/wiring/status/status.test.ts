import { readFileSync } from 'node:fs'
import t from 'tap'
import { inspect } from '../../../../src/cli/inspect/inspect.ts'
import type { JsonObject } from '../../../../src/api/kube/json.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../../../src/api/kube/node-pool.ts'
import {
  mostItems,
  mostUnderWay,
  type HubStatus,
} from '../../../../src/hub/wiring/status/status.ts'
import { addCsiNode, kubeletOf, podWith, startUp } from '../../../kit/bootable.ts'
import { configMaps, nodeName, nodes, pods, podsOfNode, secrets } from '../../../kit/cloud.ts'
import {
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
  type TestHub,
} from '../../../kit/hub.ts'
import type { Teardown } from '../../../kit/wire/wire.ts'
import { until } from '../../../kit/until.ts'

async function printed(hub: TestHub): Promise<{ code: number; out: string }> {
  let out = ''
  const take = (text: string): void => void (out += text)
  const argv = ['host-network', `--serve-port=${hub.hub.opsPort}`]
  const code = await inspect.run([...argv, `--token-file=${hub.inspectTokenFile}`], {
    out: take,
    err: take,
  })
  return { code, out }
}

const password = 'the-password-of-the-plant'

async function startNode(
  t: Teardown,
  flags: readonly string[] = [],
): Promise<{ cloud: CloudServer; hub: TestHub }> {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(secrets, {
    metadata: { name: 'password', namespace: 'default' },
    data: { password: Buffer.from(password).toString('base64') },
  })
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
  const hub = await startTestHub(t, { upstreams: [cloud], flags })
  await startUp(kubeletOf(hub))
  return { cloud, hub }
}

async function statusOf(hub: TestHub): Promise<HubStatus> {
  const { status, body } = await hub.ops.get('/inspect/status')
  if (status !== 200) throw new Error(`${status} ${body.toString()}`)
  return JSON.parse(body.toString()) as HubStatus
}

/** Resolves with the first status that satisfies `holds`. */
function statusUntil(hub: TestHub, holds: (status: HubStatus) => unknown): Promise<HubStatus> {
  let last: HubStatus | undefined
  const look = async (): Promise<HubStatus | false> => {
    last = await statusOf(hub)
    return Boolean(holds(last)) && last
  }
  return until(`a status for which ${holds}`, look, { describe: () => last })
}

const podsIn = ({ collections }: HubStatus) =>
  collections?.items.find(
    ({ resource, fieldSelector }) => resource === 'pods' && fieldSelector !== '',
  )

void t.test('online it shows API servers, what is stored, and watches by component', async (t) => {
  const { cloud, hub } = await startNode(t)
  const kubelet = kubeletOf(hub)
  const { resourceVersion } = await kubelet.list(podsOfNode)
  await kubelet.watch(`${podsOfNode}&watch=true&resourceVersion=${resourceVersion}`)
  const status = await statusUntil(
    hub,
    (each) => each.watches.items.length > 0 && podsIn(each)?.watchers === 1,
  )
  t.match(status, {
    node: 'edge-1',
    ready: true,
    link: { online: true },
    upstreams: [
      {
        origin: cloud.url,
        health: 'healthy',
        availability: 'ready',
        probeMs: Number,
        failures: [],
      },
    ],
    watches: { items: [{ component: 'kubelet', resource: 'pods', open: 1 }], omitted: 0 },
  })
  t.match(podsIn(status), { identity: 'node', objects: 1, live: true })
  t.ok((podsIn(status)?.bytes ?? 0) > 100)
  t.match(
    status.served.items.find(({ verb, what }) => verb === 'list' && what === 'pods'),
    { component: 'kubelet', cloud: 3, cache: 0, last: { source: 'cloud', code: 200 } },
  )
  t.ok(status.filters.some(({ name }) => name === 'masterservice'))
  t.match(
    status.certificates.find(({ use }) => use === 'serving'),
    { notAfter: /^9999-/, names: /issued by/ },
  )
  t.ok(status.log.some(({ message }) => message.startsWith('online')))
})

void t.test('through an outage and a restart it shows what is lost, and since when', async (t) => {
  const { cloud, hub } = await startNode(t)
  await goOffline(cloud, hub)
  await kubeletOf(hub).list(podsOfNode)
  const offline = await statusUntil(hub, ({ served }) => served.items.some((each) => each.cache))
  t.match(offline, {
    ready: true,
    link: { online: false, since: String },
    upstreams: [
      { health: 'unhealthy', lastError: String, remedy: /no API server listens .*curl -k/ },
    ],
  })
  t.ok((offline.upstreams[0]?.failures[0]?.times ?? 0) >= 1)
  t.ok(offline.log.some(({ level, message }) => level === 'warn' && message.startsWith('offline')))

  await hub.restart()
  await hub.offline()
  const rebooted = await statusUntil(hub, ({ boot }) => boot)
  t.match(podsIn(rebooted), { objects: 1, watchers: 0, live: false })
  t.match(rebooted.boot, {
    ready: false,
    waiting: 1,
    pods: { items: [{ name: 'press', problems: [{ reason: 'missing', name: 'password' }] }] },
  })
})

void t.test('the kubelet comes first and people last, in whatever order they came', async (t) => {
  const { hub } = await startNode(t)
  for (const component of ['kubectl', 'kube-proxy', 'coredns']) {
    await hub.as(component).get('/api/v1/services')
  }
  const { served } = await statusUntil(hub, (each) =>
    each.served.items.some(({ component }) => component === 'coredns'),
  )
  const components = [...new Set(served.items.map(({ component }) => component))]
  t.equal(components[0], 'kubelet')
  t.strictSame(
    components.filter((each) => /^(kube-proxy|coredns|kubectl)$/.test(each)),
    ['coredns', 'kube-proxy', 'kubectl'],
  )
})

void t.test('in a host-network pool it lists the pods with a network of their own', async (t) => {
  const cloud = await startCloud(t)
  const node = cloud.sandbox.get(nodes, nodeName) as JsonObject & { metadata: JsonObject }
  const labels = { [nodePoolLabel]: 'edge', [hostNetworkLabel]: 'true' }
  cloud.sandbox.update(nodes, { ...node, metadata: { ...node.metadata, labels } })
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--plain-proxy=true', '--host-network-propagation=on'],
  })
  await until('the hub to know the pool', async () => {
    const { body } = await hub.ops.get('/inspect/host-network')
    return (JSON.parse(body.toString()) as JsonObject)['hostNetworkPool'] === true
  })
  // It ran before the node came into the pool.
  const ran = { ...podWith('ran'), status: { hostIP: '192.0.2.1', podIP: '10.0.0.7' } }
  cloud.sandbox.create(pods, ran)
  cloud.sandbox.update(pods, ran, 'status')
  cloud.sandbox.create(pods, podWith('new'))
  const agent = podWith('agent')
  cloud.sandbox.create(pods, {
    ...agent,
    spec: { ...(agent['spec'] as JsonObject), hostNetwork: true },
  })
  t.equal((await kubeletOf(hub).list(podsOfNode)).names.length, 3)
  const { hostNetwork } = await statusUntil(hub, (each) => each.hostNetwork.pods)
  t.match(
    hostNetwork.pods?.items.map(({ name, network }) => `${name}: ${network}`),
    ['new: propagated', 'ran: pod'],
  )
  const { code, out } = await until('the report to have the pods', async () => {
    const report = await printed(hub)
    return report.out.includes('default/ran') && report
  })
  t.equal(code, 0)
  t.match(out, /^SHOWN ON THE HOST'S NETWORK[^\n]*\ndefault\/new\b/m)
  t.match(out, /^KEEPS A NETWORK OF ITS OWN\ndefault\/ran$/m)
})

void t.test('no secret is in it', async (t) => {
  const { hub } = await startNode(t)
  await kubeletOf(hub).get('/api/v1/namespaces/default/secrets/password')
  await hub.as('plant', { token: 'guessed-by-a-caller' }).get('/api/v1/secrets?token=in-a-query')
  await statusUntil(hub, ({ served }) => served.items.some(({ what }) => what === 'secrets'))
  const text = JSON.stringify(await statusOf(hub))
  const inspectToken = readFileSync(hub.inspectTokenFile, 'utf8')
  const planted = [
    password,
    Buffer.from(password).toString('base64'),
    'guessed-by-a-caller',
    'in-a-query',
    'PRIVATE KEY',
    inspectToken,
  ]
  for (const secret of planted) t.notOk(text.includes(secret), secret)
})

void t.test('it shows what is under way, and how much of its limits is used', async (t) => {
  const { cloud, hub } = await startNode(t)
  const path = '/api/v1/namespaces/default/secrets/password'
  const { resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  await hub.as('kubelet').watch(podsOfNode, { resourceVersion })
  using frozen = cloud.sandbox.faults.freeze((request) => request.path === path)
  const asked = Array.from({ length: mostUnderWay + 2 }, () => hub.as('coredns').get(path))
  const busy = await statusUntil(hub, ({ underWay }) => underWay.omitted === 2)
  t.match(busy.underWay.items[0], {
    component: 'coredns',
    caller: 'node',
    verb: 'get',
    resource: 'secrets',
    namespace: 'default',
    name: 'password',
    since: /^20\d\d-/,
    bytes: 0,
  })
  t.equal(busy.underWay.items.length, mostUnderWay, 'the watch is not among them')
  t.match(busy.saturation, {
    seats: { current: mostUnderWay + 2, limit: 250 },
    secureConnections: { limit: 4096 },
    memory: { limit: busy.memory.limit },
    cache: { current: busy.cache.bytes, limit: busy.cache.limit },
  })
  t.ok((busy.saturation.connections?.current ?? 0) > mostUnderWay)
  frozen[Symbol.dispose]()
  await Promise.all(asked)
  const { saturation } = await statusUntil(hub, ({ underWay }) => underWay.items.length === 0)
  t.equal(saturation.seats?.current, 0)
  await goOffline(cloud, hub)
  const { lastHour } = await statusUntil(hub, ({ link }) => link.online === false)
  t.match(lastHour, { online: { 59: false }, p99Ms: { 59: Number }, memoryBytes: { 59: Number } })
})

void t.test('its lists are bounded, with the number of those omitted', async (t) => {
  const { cloud, hub } = await startNode(t)
  cloud.sandbox.create(configMaps, { metadata: { name: 'one', namespace: 'default' } })
  const kubelet = kubeletOf(hub)
  const most = mostItems + 5
  for (let at = 0; at < most; at++) {
    await kubelet.list(`/api/v1/configmaps?labelSelector=app%3Dv${at}`)
  }
  const { collections } = await statusUntil(hub, (each) => (each.collections?.omitted ?? 0) >= 5)
  t.equal(collections?.items.length, mostItems)
})

void t.test('a filter shows whether it acts, and on what it has decided', async (t) => {
  const { hub } = await startNode(t, ['--disabled-resource-filters=discardcloudservice'])
  const { filters } = await statusOf(hub)
  const stateOf = (name: string) => filters.find((each) => each.name === name)?.state
  t.equal(stateOf('discardcloudservice'), 'disabled')
  t.not(stateOf('masterservice'), 'disabled')
})
