import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { inspect } from '../../src/cli/inspect/inspect.ts'
import type { HubConfig } from '../../src/config/config.ts'
import type { HostNetworkReport } from '../../src/hub/wiring/status/host-network-report.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import { at, objectOf, type Watching } from '../kit/client.ts'
import { nodeName, pod, pods, podsOfNode } from '../kit/cloud.ts'
import { definePools } from '../kit/node-pools.ts'
import {
  goOffline,
  goOnline,
  startCloud,
  startTestHub,
  type CloudServer,
  type TestHub,
} from '../kit/hub.ts'
import { inTime, until } from '../kit/until.ts'

t.setTimeout(300_000)

const nodes: GVR = { group: '', version: 'v1', resource: 'nodes' }
const modes = ['off', 'on'] as const
type Mode = (typeof modes)[number]

const poolLabel = { 'apps.openyurt.io/nodepool': 'edge' }
const hostLabel = { 'nodepool.openyurt.io/hostnetwork': 'true' }

/**
 * 'host': its pool is a host-network pool; 'none': it is in no pool; 'unknown': its pool can only
 * be told by who may read pools.
 */
type Pool = 'host' | 'none' | 'unknown'
const labelsIn: Readonly<Record<Pool, JsonObject>> = {
  host: { ...poolLabel, ...hostLabel },
  none: {},
  unknown: poolLabel,
}

/**
 * Ways in which the pool of a node's label may not exist, as the label is mistyped or came first.
 */
const withoutThePool: Readonly<Record<string, (cloud: CloudServer) => void>> = {
  'where there is no such NodePool': (cloud) => definePools(cloud, 'v1beta2'),
  'where the cluster knows no NodePools': () => undefined,
}

function putInto(cloud: CloudServer, pool: Pool): void {
  const node = cloud.sandbox.get(nodes, nodeName)
  if (!node) throw new Error('no node')
  const labels = { 'kubernetes.io/hostname': nodeName, ...labelsIn[pool] }
  cloud.sandbox.update(nodes, { ...node, metadata: { ...node.metadata, labels } })
}

const reportOf = async (hub: TestHub): Promise<HostNetworkReport> =>
  JSON.parse((await hub.ops.get('/inspect/host-network')).body.toString()) as HostNetworkReport

const metadataOf = (object: JsonObject) =>
  object['metadata'] as { readonly name: string; readonly resourceVersion: string }

const isPropagated = (object: JsonObject): boolean => at(object, 'spec', 'hostNetwork') === true

/**
 * A kubelet as far as looks go: it lists and watches, goes on from where it was, and holds what it
 * was shown of each pod.
 */
class Looking {
  readonly held = new Map<string, boolean>()
  readonly changes: string[] = []
  readonly #hub: TestHub
  readonly #encoding: Encoding
  #version: string | undefined
  #watch: Watching | undefined

  constructor(hub: TestHub, encoding: Encoding) {
    this.#hub = hub
    this.#encoding = encoding
  }

  /** Resolves when it was shown these at these versions. */
  async seen(versions: ReadonlyMap<string, string>): Promise<void> {
    const missing = new Map(versions)
    const describe = (): unknown => ({ missing: [...missing] })
    await inTime('pods at these versions', this.#see(missing), { describe })
  }

  async #see(missing: Map<string, string>): Promise<void> {
    const see = (object: JsonObject): void => {
      const { name, resourceVersion } = metadataOf(object)
      const look = isPropagated(object)
      const before = this.held.get(name)
      if (before !== undefined && before !== look) this.changes.push(`${name}: ${look}`)
      this.held.set(name, look)
      if (missing.get(name) === resourceVersion) missing.delete(name)
    }
    while (missing.size > 0) {
      const kubelet = this.#hub.as('kubelet', { encoding: this.#encoding })
      if (this.#version === undefined) {
        // It may break off, as connections do.
        const answer = await kubelet.get(podsOfNode).catch(() => undefined)
        if (answer?.status !== 200) continue
        const list = objectOf(answer)
        this.#version = metadataOf(list).resourceVersion
        for (const item of (list['items'] ?? []) as readonly JsonObject[]) see(item)
        continue
      }
      this.#watch ??= await kubelet.watch(podsOfNode, {
        resourceVersion: this.#version,
        allowWatchBookmarks: 'true',
      })
      const event = await this.#watch.next().catch(() => undefined)
      if (!event || event.type === 'ERROR') {
        this.#watch.hangUp()
        this.#watch = undefined
        if (event) this.#version = undefined
        continue
      }
      this.#version = metadataOf(event.object).resourceVersion
      if (event.type !== 'BOOKMARK') see(event.object)
    }
  }

  hangUp(): void {
    this.#watch?.hangUp()
  }
}

/** What the kubelet says of a pod that it was shown in this way. */
const statusOf = (propagated: boolean, at: number): JsonObject => {
  const podIP = propagated ? '10.0.0.1' : `10.244.0.${at}`
  const hostIP = '10.0.0.1'
  return { phase: 'Running', hostIP, hostIPs: [{ ip: hostIP }], podIP, podIPs: [{ ip: podIP }] }
}

async function startNode(
  t: Test,
  pool: Pool,
  mode: Mode,
  prepare: (cloud: CloudServer) => void = () => undefined,
) {
  const cloud = await startCloud(t)
  prepare(cloud)
  putInto(cloud, pool)
  const options = {
    upstreams: [cloud],
    flags: ['--plain-proxy=true', `--host-network-propagation=${mode}`],
    config: {} as Partial<HubConfig>,
  }
  const hub = await startTestHub(t, options)
  const inState = (...names: string[]): string => join(hub.config.rootDir, ...names)
  let inForce = mode
  let present = pool
  return {
    cloud,
    hub,
    get mode(): Mode {
      return inForce
    },
    /** While the hub runs. */
    switchTo(next: Mode): void {
      inForce = next
      options.config = { hostNetworkPropagation: next }
      hub.hub.reconfigure({ ...hub.config, hostNetworkPropagation: next })
    },
    /** While it does not run. */
    async startIn(next: Mode, ...lost: string[]): Promise<void> {
      inForce = next
      options.config = { hostNetworkPropagation: next }
      await hub.stop()
      for (const name of lost) rmSync(inState(name), { recursive: true, force: true })
      await hub.start()
    },
    /** Resolves when the hub knows it, or need not know. */
    async pool(next: Pool): Promise<void> {
      const known = (wanted: Pool): Promise<boolean> =>
        until(`the hub to know the pool ${wanted}`, async () => {
          return (await reportOf(hub)).hostNetworkPool === (wanted === 'host')
        })
      // Of a change that mode off has not followed the hub may be about to learn.
      if (inForce !== 'off' && present !== 'unknown') await known(present)
      putInto(cloud, next)
      present = next
      if (inForce !== 'off') await known(next)
    },
    create(name: string): void {
      cloud.sandbox.create(pods, pod(name))
    },
    report(name: string, status: JsonObject): void {
      const object = cloud.sandbox.get(pods, name, 'default')
      cloud.sandbox.update(pods, { ...object, status } as JsonObject, 'status')
    },
    /** Changes all pods, and tells their new versions. */
    touchAll(): ReadonlyMap<string, string> {
      for (const { metadata } of cloud.sandbox.list(pods))
        cloud.touch(pods, String(metadata.name), 'default')
      return this.versions()
    },
    versions: (): ReadonlyMap<string, string> =>
      new Map(
        cloud.sandbox
          .list(pods)
          .map(({ metadata }) => [String(metadata.name), String(metadata.resourceVersion)]),
      ),
  }
}

/** Every mode with every kind of pool: an order in which each comes once after each other. */
const tour: readonly (readonly [Mode, Pool])[] = [
  ['off', 'none'],
  ['on', 'none'],
  ['off', 'none'],
  ['on', 'host'],
  ['off', 'none'],
  ['off', 'host'],
  ['on', 'none'],
  ['on', 'host'],
  ['on', 'none'],
  ['off', 'host'],
  ['on', 'host'],
  ['off', 'host'],
  ['off', 'none'],
]

void t.test(
  'a pod’s network never changes, in whatever order modes and pools follow',
  async (t) => {
    const node = await startNode(t, 'none', 'off')
    const { hub } = node
    await hub.online()
    const kubelets = (['json', 'protobuf'] as const).map((encoding) => new Looking(hub, encoding))
    t.teardown(() => kubelets.forEach((each) => each.hangUp()))
    const expected: Record<string, boolean> = {}
    let steps = 0
    for (const [mode, pool] of [...tour, ...tour]) {
      steps++
      // By turns under a running watch, over a restart, and over one that loses the cache.
      const lost = steps % 12 === 0 ? ['cache'] : []
      if (steps % 4 === 0) await node.startIn(mode, ...lost)
      else node.switchTo(mode)
      // Requested before it is known, so that the hub has reason to learn it.
      const versions = node.touchAll()
      await Promise.all(kubelets.map((each) => each.seen(versions)))
      await node.pool(pool)
      const name = `pod-${steps}`
      node.create(name)
      expected[name] = mode === 'on' && pool === 'host'
      const isSeen = async (): Promise<void> => {
        const versions = new Map([[name, node.versions().get(name) ?? '']])
        await Promise.all(kubelets.map((each) => each.seen(versions)))
      }
      await isSeen()
      // As a kubelet does with each pod that it gets.
      node.report(name, statusOf(expected[name], steps))
      await isSeen()
      for (const kubelet of kubelets) {
        t.strictSame(kubelet.changes, [], `${mode}, ${pool}`)
        t.strictSame(Object.fromEntries(kubelet.held), expected, `${mode}, ${pool}`)
      }
    }
    t.ok(Object.values(expected).includes(true))
  },
)

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a pod that yurthub has propagated stays so in mode off, from the first answer on: ${encoding}`,
    async (t) => {
      const node = await startNode(t, 'none', 'off')
      const { hub } = node
      await hub.online()
      for (const name of ['propagated', 'own', 'early']) node.create(name)
      node.report('propagated', statusOf(true, 1))
      node.report('own', statusOf(false, 2))
      const kubelet = new Looking(hub, encoding)
      t.teardown(() => kubelet.hangUp())
      await kubelet.seen(node.touchAll())
      t.strictSame(Object.fromEntries(kubelet.held), {
        propagated: true,
        own: false,
        early: false,
      })
      t.strictSame(kubelet.changes, [], 'it was shown nothing else before')
    },
  )

  void t.test(`while the pool was never known, new pods are withheld: ${encoding}`, async (t) => {
    const node = await startNode(t, 'unknown', 'on', (cloud) =>
      cloud.sandbox.authorize(({ resource }) => resource !== 'nodepools'),
    )
    const { hub } = node
    await hub.online()
    node.create('runs')
    node.report('runs', statusOf(false, 1))
    node.create('a')
    const looking = new Looking(hub, encoding)
    t.teardown(() => looking.hangUp())
    const { runs = '', a = '' } = Object.fromEntries(node.versions())
    await looking.seen(new Map([['runs', runs]]))
    t.notOk(looking.held.has('a'))
    await node.pool('host')
    await looking.seen(new Map([['a', a]]))
    t.equal(looking.held.get('a'), true)
    t.equal(looking.held.get('runs'), false)
  })

  for (const [what, prepare] of Object.entries(withoutThePool)) {
    void t.test(`${what}, pods stay as the API server has them: ${encoding}`, async (t) => {
      const node = await startNode(t, 'unknown', 'on', prepare)
      const { cloud, hub } = node
      await hub.online()
      node.create('a')
      const looking = new Looking(hub, encoding)
      t.teardown(() => looking.hangUp())
      await looking.seen(node.touchAll())
      t.equal(looking.held.get('a'), false)
      const shown = async (): Promise<readonly string[]> =>
        (await hub.as('kubelet', { encoding }).list(podsOfNode)).names
      await goOffline(cloud, hub)
      // Other collections are tried again within this.
      await sleep(1_000)
      t.strictSame(await shown(), ['default/a'], 'without the link, too')
      await goOnline(cloud, hub)
      node.report('a', statusOf(false, 1))
      await until('the hub to say so', async () =>
        /^\[ \]filters .*nodepool/im.test(await hub.readyz()),
      )
      await node.pool('host')
      node.create('b')
      await looking.seen(node.touchAll())
      t.equal(looking.held.get('a'), false, 'a pod stays as it was first shown')
      t.equal(looking.held.get('b'), true)
      t.strictSame(looking.changes, [])
    })
  }

  void t.test(`get and the replies to writes show the same: ${encoding}`, async (t) => {
    const node = await startNode(t, 'host', 'on')
    const { hub } = node
    await hub.online()
    await node.pool('host')
    node.create('a')
    const kubelet = hub.as('kubelet', { encoding })
    const path = '/api/v1/namespaces/default/pods/a'
    t.ok(isPropagated(objectOf(await kubelet.get(path))))
    const patched = await kubelet.send(`${path}/status`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/strategic-merge-patch+json' },
      body: JSON.stringify({ status: statusOf(true, 1) }),
    })
    t.equal(patched.status, 200)
    t.ok(isPropagated(objectOf(patched)))
    t.notOk(isPropagated(objectOf(await hub.as('flanneld', { encoding }).get(path))))
    t.notOk(isPropagated(node.cloud.sandbox.get(pods, 'a', 'default') as JsonObject))
  })
}

void t.test('where no pod is propagated, mode off changes no byte', async (t) => {
  const node = await startNode(t, 'host', 'off')
  const { hub, cloud } = node
  await hub.online()
  node.create('own')
  const kubelet = new Looking(hub, 'json')
  t.teardown(() => kubelet.hangUp())
  await kubelet.seen(node.touchAll())
  const direct = await cloud.as('kubelet').get(podsOfNode)
  t.ok((await hub.as('kubelet').get(podsOfNode)).body.equals(direct.body))
  t.strictSame(kubelet.changes, [])
})

void t.test('a disabled filter keeps to what was shown', async (t) => {
  const node = await startNode(t, 'host', 'on')
  const { hub } = node
  await hub.online()
  await node.pool('host')
  node.create('a')
  const kubelet = new Looking(hub, 'json')
  t.teardown(() => kubelet.hangUp())
  await kubelet.seen(node.touchAll())
  t.equal(kubelet.held.get('a'), true)
  node.report('a', statusOf(true, 1))
  const left = [
    { enabled: true, disabled: new Set(['hostnetworkpropagation']), modules: [] },
    { enabled: true, disabled: new Set(['*']), modules: [] },
    { enabled: false, disabled: new Set<string>(), modules: [] },
  ]
  for (const filters of left) {
    hub.hub.reconfigure({ ...hub.config, filters, hostNetworkPropagation: 'off' })
    await kubelet.seen(node.touchAll())
  }
  t.strictSame(kubelet.changes, [])
})

void t.test('propagated pods and clashing ports are reported', async (t) => {
  const node = await startNode(t, 'host', 'on')
  const { hub, cloud } = node
  await hub.online()
  await node.pool('host')
  const serving = (name: string, containerPort: number, hostNetwork = false): JsonObject => ({
    ...pod(name),
    spec: {
      nodeName,
      ...(hostNetwork && { hostNetwork }),
      containers: [{ name: 'main', image: 'main', ports: [{ containerPort, protocol: 'TCP' }] }],
    },
  })
  cloud.sandbox.create(pods, serving('a', 8080))
  cloud.sandbox.create(pods, serving('b', 8080))
  cloud.sandbox.create(pods, serving('dns', 53))
  cloud.sandbox.create(pods, serving('own', 9000, true))
  t.equal((await hub.as('kubelet').get(podsOfNode)).status, 200)
  let report = await reportOf(hub)
  const isThere = async (): Promise<boolean> => {
    report = await reportOf(hub)
    return report.pods?.length === 4
  }
  await until('a report of the pods', isThere, { seconds: 30 })
  const { mode, pods: found = [] } = report
  t.equal(mode, 'on')
  t.strictSame(
    found.map(({ name, network, clashes }) => [name, network, clashes]),
    [
      ['a', 'propagated', [{ port: 8080, protocol: 'TCP', with: 'default/b' }]],
      ['b', 'propagated', [{ port: 8080, protocol: 'TCP', with: 'default/a' }]],
      ['dns', 'propagated', [{ port: 53, protocol: 'TCP', with: 'DNS' }]],
      ['own', 'host', []],
    ],
  )
  await until(
    'three propagated pods in metrics',
    async () => (await hub.metric('nodehub_host_network_pods{kind="propagated"}')) === 3,
    { seconds: 30 },
  )
  t.equal(await hub.metric('nodehub_host_network_port_clashes'), 3)
  let out = ''
  const terminal = { out: (text: string) => (out += text), err: (text: string) => t.fail(text) }
  t.equal(
    await inspect.run(
      ['host-network', `--serve-port=${hub.hub.opsPort}`, `--token-file=${hub.inspectTokenFile}`],
      terminal,
    ),
    1,
  )
  t.match(out, /^default\/a +8080\/TCP +default\/b$/m)
  t.match(out, /^default\/dns +53\/TCP$/m)
  t.notMatch(out, 'default/own')
})
