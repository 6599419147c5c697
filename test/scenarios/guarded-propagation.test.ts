import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import { at, objectOf } from '../kit/client.ts'
import { nodeName, pod, pods, podsOfNode } from '../kit/cloud.ts'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'

t.setTimeout(300_000)

const events = { group: '', version: 'v1', resource: 'events' }
const nodes = { group: '', version: 'v1', resource: 'nodes' }
const port = 18_080

async function guardedNode(t: Test, encoding: Encoding) {
  const cloud = await startCloud(t)
  const node = cloud.sandbox.get(nodes, nodeName)
  if (!node) throw new Error('no node')
  const labels = {
    'apps.openyurt.io/nodepool': 'edge',
    'nodepool.openyurt.io/hostnetwork': 'true',
  }
  cloud.sandbox.update(nodes, { ...node, metadata: { ...node.metadata, labels } })
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--plain-proxy=true', '--host-network-propagation=guarded'],
  })
  await hub.online()
  const poolKnown = (): Promise<boolean> =>
    until('the hub to know the pool', async () => {
      const { body } = await hub.ops.get('/inspect/host-network')
      return (JSON.parse(body.toString()) as JsonObject)['hostNetworkPool'] === true
    })
  await poolKnown()
  const kubelet = () => hub.as('kubelet', { encoding })
  return {
    cloud,
    hub,
    kubelet,
    create(name: string, spec: JsonObject = {}): void {
      const ports = [{ containerPort: port, protocol: 'TCP' }]
      const containers = [{ name: 'main', image: 'main', ports }]
      cloud.sandbox.create(pods, { ...pod(name), spec: { nodeName, containers, ...spec } })
    },
    async remove(name: string): Promise<void> {
      const path = `/api/v1/namespaces/default/pods/${name}?gracePeriodSeconds=0`
      t.equal((await cloud.as('kubelet').send(path, { method: 'DELETE' })).status, 200)
    },
    /** The names of the pods that a kubelet gets on the host's network. */
    async shown(): Promise<readonly string[]> {
      const list = objectOf(await kubelet().get(podsOfNode))
      return listAt(list, 'items')
        .filter((item) => at(item as JsonObject, 'spec', 'hostNetwork') === true)
        .map((item) => textAt(item, 'metadata', 'name'))
    },
    condition: (name: string): JsonObject | undefined =>
      listAt(cloud.sandbox.get(pods, name, 'default') as JsonObject, 'status', 'conditions').find(
        (each) => textAt(each, 'type') === 'HostNetworkPropagated',
      ) as JsonObject | undefined,
    async restart(...lost: readonly string[]): Promise<void> {
      await hub.stop()
      for (const name of lost) {
        rmSync(join(hub.config.rootDir, name), { recursive: true, force: true })
      }
      await hub.start()
      await hub.online()
      await poolKnown()
    },
  }
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `of pods with one port the oldest gets it, and the next when it goes: ${encoding}`,
    async (t) => {
      const node = await guardedNode(t, encoding)
      for (const name of ['a', 'b', 'c']) node.create(name)
      // On a busy machine they are made in different seconds.
      const age = (name: string): string => {
        const pod = node.cloud.sandbox.get(pods, name, 'default') as JsonObject
        const of = (field: string): unknown => textAt(pod, 'metadata', field)
        return `${of('creationTimestamp')} ${of('uid')}`
      }
      const order = ['a', 'b', 'c'].toSorted((one, other) => (age(one) < age(other) ? -1 : 1))
      const [first = '', second = '', third = ''] = order
      t.strictSame(await node.shown(), [first])
      await until('the verdicts to be conditions', async () =>
        order.every((name) => node.condition(name) !== undefined),
      )
      t.match(node.condition(first), { status: 'True', reason: 'Propagated' })
      t.match(node.condition(second), {
        status: 'False',
        reason: 'PortHeld',
        message: new RegExp(`^port ${port}/TCP is held by pod default/${first}\\. `),
      })
      t.ok(
        node.cloud.sandbox
          .list(events)
          .some((event) => textAt(event as JsonObject, 'involvedObject', 'name') === second),
        'an Event says so, too',
      )
      const list = objectOf(await node.kubelet().get(podsOfNode))
      const watch = await node.kubelet().watch(podsOfNode, {
        resourceVersion: textAt(list, 'metadata', 'resourceVersion'),
        allowWatchBookmarks: 'true',
      })
      t.teardown(() => watch.hangUp())
      await node.remove(first)
      for (;;) {
        const event = await watch.next()
        if (!event) throw new Error('the watch has ended')
        const { type, object } = event
        if (type === 'BOOKMARK' || at(object, 'spec', 'hostNetwork') !== true) continue
        if (textAt(object, 'metadata', 'name') !== second) continue
        break
      }
      t.strictSame(await node.shown(), [second], 'a running watch brings it')
      await node.restart()
      t.strictSame(await node.shown(), [second], 'after a restart nothing has changed')
      await node.restart('cache')
      t.strictSame(await node.shown(), [second], 'nor without the cache')
      await node.remove(second)
      await until('the last one to be propagated', async () => (await node.shown())[0] === third)
      t.ok(
        (await node.hub.metric(
          'nodehub_host_network_verdicts_total{result="propagated",reason="Propagated"}',
        )) ?? 0,
      )
    },
  )

  void t.test(
    `a pod that ran on the pod network stays there when the port is free: ${encoding}`,
    async (t) => {
      const node = await guardedNode(t, encoding)
      node.create('holds', { hostNetwork: true })
      node.create('waits')
      t.strictSame(await node.shown(), ['holds'])
      const waits = node.cloud.sandbox.get(pods, 'waits', 'default')
      const status = { phase: 'Running', hostIP: '10.0.0.1', podIP: '10.244.0.3' }
      node.cloud.sandbox.update(pods, { ...waits, status } as JsonObject, 'status')
      await node.shown()
      await until('the end of its wait to be reported', async () => {
        return node.condition('waits')?.['reason'] === 'KeptOnPodNetwork'
      })
      t.match(node.condition('waits'), {
        status: 'False',
        message: /has started on the pod network/,
      })
      const { body } = await node.hub.ops.get('/inspect/pod?namespace=default&name=waits')
      t.match(JSON.parse(body.toString()), { judgement: { verdict: 'unchanged' } })
      await node.remove('holds')
      t.strictSame(await node.shown(), [])
      node.create('new')
      t.strictSame(await node.shown(), ['new'])
    },
  )

  void t.test(`a port is not given twice after the cache is lost: ${encoding}`, async (t) => {
    const node = await guardedNode(t, encoding)
    // By name and age the other way round than they are to be evaluated.
    node.create('z-holds')
    t.strictSame(await node.shown(), ['z-holds'])
    const running = { phase: 'Running', hostIP: '10.0.0.1', podIP: '10.0.0.1' }
    const holds = node.cloud.sandbox.get(pods, 'z-holds', 'default')
    node.cloud.sandbox.update(pods, { ...holds, status: running } as JsonObject, 'status')
    const list = objectOf(await node.kubelet().get(podsOfNode))
    await node.restart('cache', 'host-network.json')
    const watch = await node.kubelet().watch(podsOfNode, {
      resourceVersion: textAt(list, 'metadata', 'resourceVersion'),
    })
    t.teardown(() => watch.hangUp())
    node.create('a-new')
    for (;;) {
      const event = await watch.next()
      if (!event) throw new Error('the watch has ended')
      if (textAt(event.object, 'metadata', 'name') !== 'a-new') continue
      t.equal(at(event.object, 'spec', 'hostNetwork') ?? false, false)
      break
    }
    await until('the verdict', async () => node.condition('a-new') !== undefined)
    t.match(node.condition('a-new'), {
      reason: 'PortHeld',
      message: /is held by pod default\/z-holds\./,
    })
  })

  void t.test(`a refused pod is not forgotten with the verdicts: ${encoding}`, async (t) => {
    const node = await guardedNode(t, encoding)
    node.create('holds', { hostNetwork: true })
    node.create('waits')
    t.strictSame(await node.shown(), ['holds'])
    await until('the verdict', async () => node.condition('waits') !== undefined)
    const before = { status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }
    const conditions = [{ ...before, type: 'HostNetworkPropagated', reason: 'FromBefore' }]
    const waits = node.cloud.sandbox.get(pods, 'waits', 'default')
    const status = { phase: 'Pending', conditions }
    node.cloud.sandbox.update(pods, { ...waits, status } as JsonObject, 'status')
    await node.shown()
    await node.restart('host-network.json')
    t.strictSame(await node.shown(), ['holds'])
    await until('the reason', async () => node.condition('waits')?.['reason'] === 'PortHeld')
    t.match(node.condition('waits'), before, 'another reason is no transition')
    await node.remove('holds')
    await until('the pod to be propagated', async () => (await node.shown())[0] === 'waits')
    await until('the transition', async () => node.condition('waits')?.['status'] === 'True')
    t.not(node.condition('waits')?.['lastTransitionTime'], before.lastTransitionTime)
  })

  void t.test(`a pod that would harm the node is never propagated: ${encoding}`, async (t) => {
    const node = await guardedNode(t, encoding)
    const main = { name: 'main', image: 'main' }
    node.create('mesh', {
      initContainers: [
        { ...main, name: 'init', securityContext: { capabilities: { add: ['NET_ADMIN'] } } },
      ],
    })
    node.create('privileged', { containers: [{ ...main, securityContext: { privileged: true } }] })
    node.create('kubelet-port', {
      containers: [{ ...main, livenessProbe: { tcpSocket: { port: 10_250 } } }],
    })
    node.create('mapped', {
      containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 18_081, protocol: 'TCP' }] }],
    })
    t.strictSame(await node.shown(), [])
    const reasons = {
      mesh: 'NetworkAdministrator',
      privileged: 'PrivilegedContainer',
      'kubelet-port': 'PortReserved',
      mapped: 'HostPortDiffers',
    }
    for (const [name, reason] of Object.entries(reasons)) {
      await until(`the condition of ${name}`, async () => node.condition(name) !== undefined)
      t.match(node.condition(name), { status: 'False', reason })
    }
  })
}

void t.test('a verdict made offline is reported once there is a link', async (t) => {
  const node = await guardedNode(t, 'json')
  node.create('holds', { hostNetwork: true })
  for (const name of ['waits', 'waits-too']) node.create(name)
  t.strictSame(await node.shown(), ['holds'])
  await until('the verdict', async () => node.condition('waits-too') !== undefined)
  await node.shown()
  await node.hub.stop()
  await node.cloud.unplug()
  await node.hub.start()
  t.strictSame(await node.shown(), ['holds'])
  // By these changes each is evaluated again, and as before.
  for (const name of ['waits', 'waits-too', 'holds']) {
    const now = node.cloud.sandbox.get(pods, name, 'default')
    const status = { phase: 'Pending', conditions: [] }
    node.cloud.sandbox.update(pods, { ...now, status } as JsonObject, 'status')
  }
  await node.cloud.plug()
  await node.hub.online()
  t.strictSame(await node.shown(), ['holds'])
  await until('both conditions', async () =>
    ['waits', 'waits-too'].every((name) => node.condition(name) !== undefined),
  )
  t.match(node.condition('waits-too'), { status: 'False', reason: 'PortHeld' })
})

void t.test('a report that fails does not hold up the others', async (t) => {
  const node = await guardedNode(t, 'json')
  node.create('holds', { hostNetwork: true })
  using _failing = node.cloud.sandbox.faults.fail(500, ({ path }) =>
    path.endsWith('/pods/first/status'),
  )
  node.create('first')
  t.strictSame(await node.shown(), ['holds'])
  node.create('second')
  t.strictSame(await node.shown(), ['holds'])
  await until('the second report', async () => node.condition('second') !== undefined)
  t.equal(node.condition('first'), undefined)
})

void t.test('a pod whose condition is denied has its Event, and others have both', async (t) => {
  const node = await guardedNode(t, 'json')
  node.create('holds', { hostNetwork: true })
  const ofPod = (name: string): readonly JsonObject[] =>
    node.cloud.sandbox
      .list(events, 'default')
      .filter(
        (each) => textAt(each as JsonObject, 'involvedObject', 'name') === name,
      ) as JsonObject[]
  using _denied = node.cloud.sandbox.faults.fail(403, ({ path }) =>
    path.endsWith('/pods/first/status'),
  )
  for (const name of ['first', 'second']) {
    node.create(name)
    t.strictSame(await node.shown(), ['holds'])
  }
  await until('the second report', async () => node.condition('second') !== undefined)
  t.equal(node.condition('first'), undefined)
  await until('both Events', async () =>
    ['first', 'second'].every((name) => ofPod(name).some(({ reason }) => reason === 'PortHeld')),
  )
})

void t.test('a pod that the ledger keeps off the host clashes with nothing', async (t) => {
  const node = await guardedNode(t, 'json')
  for (const name of ['holds', 'waits']) {
    node.create(name)
    t.strictSame(await node.shown(), ['holds'])
  }
  const ports = [{ containerPort: 80, protocol: 'TCP' }]
  node.create('usual', { containers: [{ name: 'main', image: 'main', ports }] })
  t.same(new Set(await node.shown()), new Set(['holds', 'usual']))
  await until('a warning', async () => node.condition('usual') !== undefined)
  t.match(node.condition('usual'), { reason: 'PropagatedWithWarning' })
  const clashes = await until('the pods in the report', async () => {
    const { body } = await node.hub.ops.get('/inspect/host-network')
    const reported = listAt(JSON.parse(body.toString()) as JsonObject, 'pods')
    return reported.length === 3 && reported.flatMap((each) => listAt(each, 'clashes'))
  })
  t.strictSame(clashes, [])
})

void t.test(
  'a propagated pod gets its condition of a later hub where the first failed',
  async (t) => {
    const node = await guardedNode(t, 'json')
    {
      using _failing = node.cloud.sandbox.faults.fail(500, ({ path }) => path.endsWith('/status'))
      for (const name of ['runs', 'starts']) {
        const ports = [{ containerPort: name === 'runs' ? port : port + 1, protocol: 'TCP' }]
        node.create(name, { containers: [{ name: 'main', image: 'main', ports }] })
      }
      t.same(new Set(await node.shown()), new Set(['runs', 'starts']))
      await node.hub.stop()
    }
    const status = { phase: 'Running', hostIP: '10.0.0.1', podIP: '10.0.0.1' }
    const runs = node.cloud.sandbox.get(pods, 'runs', 'default')
    node.cloud.sandbox.update(pods, { ...runs, status } as JsonObject, 'status')
    await node.hub.start()
    await node.hub.online()
    await node.shown()
    await until('both conditions', async () =>
      ['runs', 'starts'].every((name) => node.condition(name) !== undefined),
    )
    // By what the hub had of it when it began.
    for (const name of ['runs', 'starts'])
      t.match(node.condition(name), { status: 'True', reason: 'Propagated' })
  },
)
