import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { objectOf } from '../kit/client.ts'
import { pods, podsOfNode, identifiesCluster } from '../kit/cloud.ts'
import {
  startOnlineHub,
  goOffline,
  startCloud,
  TestHub,
  type CloudServer,
  onlineNodeWith,
} from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

const aPod = '/api/v1/namespaces/default/pods/a'
const anyPods = '/api/v1/pods?resourceVersion=0'

const isProbe = ({ path }: { path: string }): boolean => path === '/readyz'
const isNoProbe = ({ path, url }: { path: string; url: string }): boolean =>
  path !== '/readyz' && path !== '/livez' && !identifiesCluster({ url })

/** Probes that are not answered fail soon, and one is enough. */
const impatient = {
  heartbeat: { intervalMs: 40, timeoutMs: 500, failedRetry: 1, healthyThreshold: 1 },
}

/** Two clouds with a pod each, named after them. */
async function two(t: Teardown): Promise<readonly [CloudServer, CloudServer]> {
  const [first, second] = [await startCloud(t), await startCloud(t)]
  first.addPods('first')
  second.addPods('second')
  return [first, second]
}

const named = (path: string): string[] => [`default/${path}`]

void t.test(
  'F11: a frozen API server is detected within seconds, and its watches end there',
  async (t) => {
    const [first, second] = await two(t)
    const hub = await startOnlineHub(t, {
      upstreams: [first, second],
      flags: ['--lb-mode=priority'],
      config: impatient,
    })
    const operator = hub.as('operator')
    const watches = await Promise.all([1, 2, 3].map(() => operator.watch('/api/v1/pods')))
    const recorded = await hub.as('kubelet').watch('/api/v1/pods')
    await recorded.next()
    await first.sandbox.untilWatches(4)
    using _frozen = first.sandbox.faults.freeze()
    await Promise.all(watches.map((watch) => watch.end()))
    const again = await operator.watch('/api/v1/pods')
    t.match(await again.next(), { object: { metadata: { name: 'second' } } })
    await second.sandbox.untilWatches(2)
    second.addPods('third')
    const goesOn = 'a recorded watch goes on at the other'
    t.match(await recorded.next(), { object: { metadata: { name: 'third' } } }, goesOn)
    t.equal(hub.hub.online(), true)
  },
)

void t.test('F12: API servers are used all the same when none of them is ready', async (t) => {
  const [first, second] = await two(t)
  const hub = await startOnlineHub(t, { upstreams: [first, second] })
  const strained = [first, second].map(({ sandbox }) => sandbox.faults.fail(500, isProbe))
  await Promise.all([first, second].map(({ sandbox }) => sandbox.nextRequest(isProbe)))
  const healthy = `nodehub_upstream_healthy{upstream="${second.url}"}`
  await until('the second to be seen as not ready', async () => (await hub.metric(healthy)) === 0)
  t.equal(hub.hub.online(), true)
  const answer = await hub.as('operator').get('/api/v1/pods')
  t.equal(answer.status, 200)
  await hub.answered(({ path, source }) => path === '/api/v1/pods' && source === 'cloud')
  for (const fault of strained) fault[Symbol.dispose]()
})

void t.test(
  'F12: API servers that answer probes too late, but answer, are not given up',
  async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { config: impatient }, 'a')
    const watch = await hub.as('kubelet').watch(podsOfNode)
    await watch.next()
    using _slow = cloud.sandbox.faults.delay(1_000_000, isProbe)
    for (let probe = 0; probe < 3; probe++) {
      const probed = cloud.sandbox.nextRequest(isProbe)
      let asked = false
      void probed.then(({ over }) => over.addEventListener('abort', () => (asked = true)))
      await until('the probe to be given up', async () => {
        if (asked) return true
        cloud.touch(pods, 'a', 'default')
        await watch.take(1)
        return false
      })
    }
    t.equal(hub.hub.online(), true)
    t.equal((await hub.as('kubelet').get(aPod)).status, 200)
  },
)

void t.test(
  'an API server at which requests fail is passed over, though its probes succeed',
  async (t) => {
    const [first, second] = await two(t)
    const hub = await startOnlineHub(t, {
      upstreams: [first, second],
      flags: ['--lb-mode=priority'],
      config: { heartbeat: { ...impatient.heartbeat, intervalMs: 60_000 } },
    })
    const broken = first.sandbox.faults.reset(isNoProbe)
    const operator = hub.as('operator')
    for (let i = 0; i < 10; i++) {
      t.strictSame((await operator.list('/api/v1/pods')).names, named('second'))
    }
    const answered = `nodehub_upstream_requests_total{upstream="${second.url}",outcome="answered"}`
    t.ok((await hub.metric(answered)) >= 10)
    const tried = first.sandbox.requests.filter(isNoProbe).length
    t.equal(tried, 5, 'it was tried five times, and then no more')
    t.equal(await hub.metric(`nodehub_upstream_healthy{upstream="${first.url}"}`), 1)
    await second.unplug()
    broken[Symbol.dispose]()
    t.strictSame(
      (await operator.list('/api/v1/pods')).names,
      named('first'),
      'when no other is left',
    )
  },
)

const threePods = (cloud: CloudServer): void => cloud.addPods('a', 'b', 'c')

/**
 * A cloud, once it is filled, and a second API server of it that lags by so many versions and is
 * asked after it, or before.
 */
async function oneBehind(
  t: Teardown,
  versions: number,
  fill: (cloud: CloudServer) => void,
  { asked }: { asked: 'first' | 'last' } = { asked: 'last' },
) {
  const cloud = await startCloud(t, { freshnessMs: 20 })
  fill(cloud)
  const behind = await cloud.sandbox.lag(versions)
  t.teardown(() => behind[Symbol.asyncDispose]())
  const upstreams = asked === 'last' ? [cloud, behind] : [behind, cloud]
  const hub = await startOnlineHub(t, { upstreams, flags: ['--lb-mode=priority'] })
  return { cloud, behind, hub, kubelet: hub.as('kubelet') }
}

void t.test('F16: where one API server lags, the next one is tried', async (t) => {
  const { cloud, hub, kubelet } = await oneBehind(t, 2, threePods, { asked: 'first' })
  const { version } = cloud.sandbox
  const { names, resourceVersion } = await kubelet.list(`/api/v1/pods?resourceVersion=${version}`)
  t.match({ names, resourceVersion }, { names: { length: 3 }, resourceVersion: version })
  t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 0)
})

void t.test('an API server that lags takes back nothing that is known already', async (t) => {
  const { cloud, behind, hub, kubelet } = await oneBehind(t, 2, threePods)
  const newest = await kubelet.list('/api/v1/pods')
  await cloud.unplug()
  // From whatever the server has at hand, which is older than what the node has seen.
  t.equal((await kubelet.get('/api/v1/pods?resourceVersion=0')).status, 200)
  await behind[Symbol.asyncDispose]()
  await hub.offline()
  const offline = await kubelet.list('/api/v1/pods')
  t.equal(offline.resourceVersion, newest.resourceVersion)
  t.strictSame(offline.names, newest.names)
})

/**
 * A hub that has shown its kubelet two pods of a cluster, and goes on after that was restored to
 * one pod, at lower versions.
 */
async function afterRestore(t: Teardown) {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-test-'))
  t.teardown(() => rmSync(rootDir, { recursive: true, force: true }))
  const before = await startCloud(t, { firstVersion: 5_000 })
  before.addPods('a', 'b')
  const restored = await startCloud(t, { firstVersion: 1_000, freshnessMs: 20 })
  restored.addPods('a')
  const hubOf = async (cloud: CloudServer): Promise<TestHub> => {
    const hub = await new TestHub(rootDir, { upstreams: [cloud] }).start()
    t.teardown(() => hub.stop())
    await hub.online()
    return hub
  }
  const first = await hubOf(before)
  await first.as('kubelet').list(anyPods)
  await first.as('kubelet').get(anyOfA)
  await first.stop()
  return { restored, hub: await hubOf(restored) }
}

const anyOfA = `${aPod}?resourceVersion=0`

void t.test('a cluster restored to an earlier state replaces what is recorded', async (t) => {
  const { restored, hub: second } = await afterRestore(t)
  const kubelet = second.as('kubelet')
  t.equal((await kubelet.list(anyPods)).resourceVersion, restored.sandbox.version)
  const { resourceVersion } = restored.sandbox.get(pods, 'a', 'default')?.metadata ?? {}
  for (const asked of ['as it was known', 'as it is']) {
    const got = objectOf(await kubelet.get(anyOfA))
    t.match(got, { metadata: { resourceVersion } }, asked)
  }
  t.notMatch(restored.sandbox.requests.at(-1)?.url, /resourceVersion=5/, 'it is believed')
  await goOffline(restored, second)
  t.strictSame((await kubelet.list(anyPods)).names, named('a'))
  const { status, ...offline } = await kubelet.get(anyOfA)
  t.equal(status, 200)
  t.match(objectOf(offline), { metadata: { resourceVersion } }, 'and so it is kept')
})

void t.test('of a cluster that was restored nothing of before is answered', async (t) => {
  const { restored, hub } = await afterRestore(t)
  await hub.logged('the cluster was restored from a backup')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = restored.sandbox.get(pods, 'a', 'default')?.metadata ?? {}
  t.match(objectOf(await kubelet.get(aPod)), { metadata: { resourceVersion } })
  await goOffline(restored, hub)
  t.match(objectOf(await kubelet.get(aPod)), { metadata: { resourceVersion } })
  t.equal((await kubelet.get(anyPods)).status, 503)
})
