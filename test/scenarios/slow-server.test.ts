import t, { type Test } from 'tap'
import { configMaps } from '../kit/cloud.ts'
import {
  startOnlineHub,
  goOffline,
  startCloud,
  type CloudServer,
  type TestHub,
  onlineNodeWith,
} from '../kit/hub.ts'
import { thinLink } from '../kit/wire/thin-link.ts'

/**
 * As by default, but with probes much closer to each other: whoever were to take slowness for death
 * would do so here.
 */
const config = {
  heartbeat: { intervalMs: 200, timeoutMs: 2_000, failedRetry: 3, healthyThreshold: 2 },
}

const allConfigMaps = '/api/v1/configmaps?resourceVersion=0'
const isProbe = ({ path }: { path: string }): boolean => path === '/readyz' || path === '/livez'

function fill({ sandbox }: CloudServer, count: number, bytesEach: number): void {
  for (let i = 0; i < count; i++) {
    sandbox.create(configMaps, {
      metadata: { name: `c${i}`, namespace: 'default' },
      data: { long: 'x'.repeat(bytesEach) },
    })
  }
}

/** Everything was answered by the cloud, and nobody doubted that it is there. */
async function nobodyDoubted(t: Test, hub: TestHub, url: string): Promise<void> {
  t.strictSame([...new Set(hub.answers.map(({ source }) => source))], ['cloud'])
  t.notMatch(hub.lines.join(''), 'offline:')
  const failed = `nodehub_upstream_requests_total{upstream="${url}",outcome="failed"}`
  t.equal(await hub.metric(failed), 0)
}

void t.test('an API server behind 64 kbit/s is slow, and not taken for dead', async (t) => {
  const cloud = await startCloud(t)
  fill(cloud, 8, 5_000)
  const link = await thinLink(t, cloud.url, 64_000 / 8)
  const hub = await startOnlineHub(t, { upstreams: [link], config })
  const list = hub.as('kubelet').list(allConfigMaps)
  await cloud.sandbox.nextRequest(({ path }) => path === '/api/v1/configmaps')
  const waiting = hub.as('operator').get('/api/v1/nodes/edge-1')
  t.equal((await list).names.length, 8)
  t.equal((await waiting).status, 200)
  await nobodyDoubted(t, hub, link.url)
})

void t.test('a list of 50 MB passes and is recorded, and others are answered', async (t) => {
  const cloud = await startCloud(t)
  fill(cloud, 50, 1_000_000)
  const hub = await startOnlineHub(t, { upstreams: [cloud], config })
  const list = hub.as('kubelet').list(allConfigMaps)
  await cloud.sandbox.nextRequest(({ path }) => path === '/api/v1/configmaps')
  t.equal((await hub.as('operator').get('/api/v1/nodes/edge-1')).status, 200)
  t.equal((await list).names.length, 50)
  await nobodyDoubted(t, hub, cloud.url)
  await goOffline(cloud, hub)
  t.equal((await hub.as('kubelet').list(allConfigMaps)).names.length, 50)
})

void t.test('requests that wait in the queues of an API server go on waiting', async (t) => {
  const { cloud, hub } = await onlineNodeWith(t, { config }, 'a')
  // Health checks pass the queues by (apiserver, flow schema `probes`).
  using _queue = cloud.sandbox.faults.delay(2_500, (request) => !isProbe(request))
  const answers = await Promise.all(
    ['kubelet', 'operator', 'kube-proxy'].flatMap((component) => [
      hub.as(component).get('/api/v1/namespaces/default/pods/a'),
      hub.as(component).get('/api/v1/pods?resourceVersion=0'),
    ]),
  )
  t.strictSame([...new Set(answers.map(({ status }) => status))], [200])
  await nobodyDoubted(t, hub, cloud.url)
})
