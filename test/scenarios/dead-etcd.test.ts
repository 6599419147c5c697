import t from 'tap'
import { podsOfNode } from '../kit/cloud.ts'
import { startOnlineHub, startCloud } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1'
const heartbeat = { intervalMs: 60, timeoutMs: 2_000, failedRetry: 1, healthyThreshold: 1 }

/** A hub that prefers an API server that is about to die. */
async function deadAndLive(t: Teardown, intervalMs = 3_600_000) {
  const [dead, live] = [await startCloud(t), await startCloud(t)]
  const hub = await startOnlineHub(t, {
    upstreams: [dead, live],
    flags: ['--lb-mode=priority'],
    config: { heartbeat: { ...heartbeat, intervalMs } },
  })
  return { dead, live, hub }
}

void t.test('an API server whose /livez fails comes after one that is live', async (t) => {
  const { dead, live, hub } = await deadAndLive(t, heartbeat.intervalMs)
  using _livez = dead.sandbox.faults.fail(500, ({ path }) => path === '/livez')
  using _hung = dead.sandbox.faults.freeze(({ path }) => path.startsWith('/api'))
  await hub.logged('but not live (/livez): 500')
  t.equal((await hub.as('kubelet').get('/api/v1/nodes/edge-1')).status, 200)
  t.equal(live.sandbox.requests.filter(({ path }) => path === '/api/v1/nodes/edge-1').length, 1)
  const { body } = await hub.ops.get('/readyz?verbose')
  t.match(String(body), /\[ \]upstream \S+ unready, .*not live \(\/livez\): 500/)
})

void t.test('a read under way at one that is not live goes on at another one', async (t) => {
  const { dead, live, hub } = await deadAndLive(t)
  using _livez = dead.sandbox.faults.fail(500, ({ path }) => path === '/livez')
  using _hung = dead.sandbox.faults.freeze(({ path }) => path.startsWith('/api'))
  t.equal((await hub.as('kubelet').get('/api/v1/nodes/edge-1')).status, 200)
  const isRead = ({ path }: { path: string }): boolean => path === '/api/v1/nodes/edge-1'
  t.equal(dead.sandbox.requests.filter(isRead).length, 1)
  t.equal(live.sandbox.requests.filter(isRead).length, 1)
})

void t.test('an API server that answers writes 504 comes after others', async (t) => {
  const { dead, hub } = await deadAndLive(t)
  using _late = dead.sandbox.faults.fail(504, ({ method }) => method === 'PUT')
  const kubelet = hub.as('kubelet')
  const body = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata: { name: 'edge-1' } }
  let status = 504
  for (let tries = 0; status === 504 && tries < 10; tries++)
    ({ status } = await kubelet.send(lease, { method: 'PUT', body }))
  t.not(status, 504, 'the lease is renewed at the other one')
})

void t.test(
  'alone and not ready, it is waited for only where the cache has no answer',
  async (t) => {
    const alone = await startCloud(t)
    alone.addPods('a')
    const hub = await startOnlineHub(t, { upstreams: [alone], config: { heartbeat } })
    const kubelet = hub.as('kubelet')
    const recorded = await kubelet.list(podsOfNode)
    const node = '/api/v1/nodes/edge-1'
    const pod = '/api/v1/namespaces/default/pods/a'
    const settings = '/api/v1/namespaces/default/configmaps'
    for (const path of [node, pod, `${settings}?fieldSelector=metadata.name%3Dnone`])
      t.equal((await kubelet.get(path)).status, 200)
    const isRead = ({ path }: { path: string }): boolean => path.startsWith('/api')
    const neverRead = '/api/v1/services'
    const waiting = await (async () => {
      using _readyz = alone.sandbox.faults.fail(500, ({ path }) => path === '/readyz')
      using _hung = alone.sandbox.faults.freeze(isRead)
      const unrecorded = kubelet.get(neverRead)
      const list = await kubelet.list(podsOfNode)
      t.strictSame([list.names, list.resourceVersion], [recorded.names, recorded.resourceVersion])
      for (const path of [node, pod]) t.equal((await kubelet.get(path)).status, 200)
      t.equal((await kubelet.get(`${settings}/none`)).status, 404)
      t.equal(hub.answers.filter(({ source }) => source === 'cache').length, 3)
      t.notOk(
        hub.answers.some(({ path }) => path === neverRead),
        'it waits',
      )
      return unrecorded
    })()
    t.equal(waiting.status, 200, 'as it would without a hub')
    const reads = (): number => alone.sandbox.requests.filter(({ path }) => path === node).length
    const before = reads()
    t.equal((await kubelet.get(node)).status, 200)
    t.equal(reads(), before + 1)
  },
)
