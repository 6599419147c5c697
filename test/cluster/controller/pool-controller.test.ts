import t from 'tap'
import {
  PoolController,
  type PoolControllerOptions,
} from '../../../src/cluster/controller/pool-controller.ts'
import { previousAttributesAnnotation as memory } from '../../../src/cluster/previous-attributes.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { objectAt, textAt } from '../../../src/api/kube/json-at.ts'
import { turn } from '../../../src/base/clock.ts'
import { hostNetworkLabel, nodePoolLabel, nodePools } from '../../../src/api/kube/node-pool.ts'
import type { SeenRequest } from '../../../src/sandbox/requests.ts'
import { nodes, pods } from '../../kit/cloud.ts'
import { startTestCluster, type TestCluster } from '../../kit/cluster-api.ts'
import { Condition } from '../../kit/condition.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { settled } from '../../kit/settled.ts'

t.setTimeout(300_000)

const pool = (name: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: { type: 'Edge', ...spec },
})

const node = (name: string, poolName: string, labels: JsonObject = {}): JsonObject => ({
  metadata: { name, labels: { [nodePoolLabel]: poolName, ...labels } },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

const onNode = (name: string, nodeName: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'default' },
  spec: { nodeName, containers: [{ name: 'main', image: 'i' }], ...spec },
})

class Running {
  readonly controller: PoolController
  readonly written: string[] = []
  readonly seen = new Condition()

  constructor(t: Teardown, { api }: TestCluster, options: Partial<PoolControllerOptions> = {}) {
    this.controller = new PoolController({
      api,
      term: new AbortController().signal,
      workers: 16,
      onWrite: (what, name) => {
        this.written.push(`${what} ${name}`)
        this.seen.changed()
      },
      ...options,
    })
    t.teardown(() => this.controller[Symbol.asyncDispose]())
  }

  get nodeWrites(): string[] {
    return this.written.filter((what) => what.startsWith('node '))
  }
}

const isWrite = ({ method }: SeenRequest): boolean => method !== 'GET'

const label = ({ sandbox }: TestCluster, name: string, key: string): string | undefined =>
  textAt(sandbox.get(nodes, name), 'metadata', 'labels', key) || undefined

const events = ({ sandbox }: TestCluster): string[] =>
  sandbox
    .list({ group: '', version: 'v1', resource: 'events' }, 'default')
    .map((event) => `${textAt(event, 'involvedObject', 'name')} ${textAt(event, 'reason')}`)

void t.test(
  '500 nodes: a change reaches each in one write, and a restart writes nothing',
  async (t) => {
    const cluster = await startTestCluster(t, { history: 20_000 })
    const { sandbox } = cluster
    for (let i = 0; i < 20; i++)
      sandbox.create(nodePools, pool(`p-${i}`, { labels: { zone: 'a' } }))
    for (let i = 0; i < 500; i++)
      sandbox.create(nodes, node(`n-${i}`, `p-${i % 20}`, { own: `${i}` }))
    const first = new Running(t, cluster)
    await settled(first.controller)
    t.equal(first.nodeWrites.length, 500)
    t.equal(new Set(first.nodeWrites).size, 500)
    t.equal(first.written.length, 540, 'and each pool once, and its status once')
    first.written.length = 0
    for (let i = 0; i < 20; i++)
      sandbox.update(nodePools, {
        ...sandbox.get(nodePools, `p-${i}`),
        spec: { type: 'Edge', labels: { zone: 'b', tier: '1' } },
      })
    await first.seen.until(() => first.written.length >= 500)
    await settled(first.controller)
    t.equal(new Set(first.nodeWrites).size, 500)
    t.equal(first.written.length, 500, 'nothing but one write a node')
    t.ok(sandbox.list(nodes).every((each) => textAt(each, 'metadata', 'labels', 'zone') === 'b'))
    await first.controller[Symbol.asyncDispose]()

    const before = sandbox.requests.filter(isWrite).length
    const second = new Running(t, cluster)
    await settled(second.controller)
    t.equal(second.controller.nodes.size, 500)
    t.equal(sandbox.requests.filter(isWrite).length, before, 'a restart writes nothing')
  },
)

void t.test('the label is set once the last pod on the pod network is gone', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(nodePools, pool('h', { hostNetwork: true, labels: { zone: 'a' } }))
  sandbox.create(nodes, node('h-1', 'h'))
  sandbox.create(pods, onNode('served-by-the-cni', 'h-1'))
  const { controller, seen, written } = new Running(t, cluster, { withheldMs: 20 })
  await settled(controller)
  t.equal(label(cluster, 'h-1', hostNetworkLabel), undefined)
  t.equal(label(cluster, 'h-1', 'zone'), 'a', 'all else is there')
  t.strictSame([...controller.withheld], [['h-1', ['default/served-by-the-cni']]])
  t.strictSame(events(cluster), ['h-1 HostNetworkLabelWithheld'])
  sandbox.delete(pods, 'served-by-the-cni', 'default', { gracePeriodSeconds: 0 })
  await seen.until(() => written.filter((what) => what === 'node h-1').length === 2)
  t.equal(label(cluster, 'h-1', hostNetworkLabel), 'true')
  await settled(controller)
  t.equal(controller.withheld.size, 0)
})

void t.test(
  'a label that is taken off by hand is put back at once, whatever runs there',
  async (t) => {
    const cluster = await startTestCluster(t)
    const { sandbox } = cluster
    sandbox.create(nodePools, pool('h', { hostNetwork: true }))
    sandbox.create(nodes, node('h-1', 'h'))
    const { controller, seen, written } = new Running(t, cluster)
    await settled(controller)
    sandbox.create(pods, onNode('slipped-in', 'h-1'))
    const labelled = sandbox.get(nodes, 'h-1')!
    sandbox.update(nodes, {
      ...labelled,
      metadata: { ...labelled.metadata, labels: { [nodePoolLabel]: 'h' } },
    })
    await seen.until(() => written.filter((what) => what === 'node h-1').length === 2)
    await settled(controller)
    t.equal(label(cluster, 'h-1', hostNetworkLabel), 'true')
    t.ok(events(cluster).includes('h-1 HostNetworkLabelRestored'))
  },
)

void t.test('a write that conflicts is retried from the node’s current state', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(nodePools, pool('p', { labels: { zone: 'a' } }))
  sandbox.create(nodes, node('p-1', 'p'))
  const api = await cluster.connect()
  const patch = api.patch.bind(api)
  let meddled = false
  api.patch = (path, body, signal) => {
    if (path === '/api/v1/nodes/p-1' && !meddled) {
      meddled = true
      const now = sandbox.get(nodes, 'p-1')!
      const labels = { [nodePoolLabel]: 'p', zone: 'mine' }
      sandbox.update(nodes, { ...now, metadata: { ...now.metadata, labels } })
    }
    return patch(path, body, signal)
  }
  let conflicts = 0
  const running = new Running(t, { ...cluster, api }, { onConflict: () => void conflicts++ })
  await running.seen.until(() => running.nodeWrites.length === 1)
  t.equal(conflicts, 1)
  t.equal(label(cluster, 'p-1', 'zone'), 'mine', 'what the user set meanwhile stays')
  t.match(textAt(sandbox.get(nodes, 'p-1'), 'metadata', 'annotations', memory), '"nodePool":"p"')
})

void t.test('a process that no longer leads writes nothing', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(nodePools, pool('p', { labels: { zone: 'a' } }))
  sandbox.create(nodes, node('p-1', 'p'))
  const { controller } = new Running(t, cluster, { term: AbortSignal.abort() })
  await settled(controller)
  t.strictSame(sandbox.requests.filter(isWrite), [])
})

void t.test('nodes that become Ready together have the status written rarely', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(nodePools, pool('p'))
  const names = Array.from({ length: 10 }, (_, i) => `n-${i}`)
  for (const name of names) sandbox.create(nodes, { ...node(name, 'p'), status: {} })
  const { controller, seen, written } = new Running(t, cluster)
  await settled(controller)
  const status = () => sandbox.get(nodePools, 'p')?.['status']
  t.match(status(), { unreadyNodeNum: 10 })
  written.length = 0
  const statuses = () => written.filter((what) => what === 'pool status p').length
  for (const name of names) {
    const { status } = node(name, 'p')
    sandbox.update(nodes, { ...sandbox.get(nodes, name)!, status: status! }, 'status')
    while (controller.nodes.get(name)?.ready !== true) await turn()
    await settled(controller)
  }
  await seen.until(() => objectAt(sandbox.get(nodePools, 'p'), 'status')['readyNodeNum'] === 10)
  t.ok(statuses() <= 3, `${statuses()} writes`)
})

void t.test('a node that moves gets an Event, and both statuses change', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  for (const name of ['p', 'q']) sandbox.create(nodePools, pool(name))
  sandbox.create(nodes, node('n-1', 'p'))
  const { controller, seen, written } = new Running(t, cluster)
  await settled(controller)
  written.length = 0
  const now = sandbox.get(nodes, 'n-1')!
  sandbox.update(nodes, { ...now, metadata: { ...now.metadata, labels: { [nodePoolLabel]: 'q' } } })
  await seen.until(() => ['node n-1', 'pool p', 'pool q'].every((what) => written.includes(what)))
  await settled(controller)
  t.match(sandbox.get(nodePools, 'p'), { status: { nodes: [] } })
  t.match(sandbox.get(nodePools, 'q'), { status: { nodes: ['n-1'] } })
  t.strictSame(sandbox.get(nodePools, 'p')?.metadata['finalizers'] ?? [], [])
  t.ok(events(cluster).includes('n-1 NodePoolChanged'))
})
