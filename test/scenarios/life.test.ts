import t from 'tap'
import { mkdirSync, rmSync } from 'node:fs'
import { ownVersion } from '../../src/base/own-version.ts'
import { limits } from '../../src/http/server/limits.ts'
import { mostPipelined } from '../../src/http/server/ops.ts'
import { objectOf } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { refusingDisk } from '../kit/log-on-disk.ts'
import {
  startOnlineHub,
  goOffline,
  onlineNode,
  goOnline,
  startCloud,
  onlineNodeWith,
} from '../kit/hub.ts'
import { dial } from '../kit/wire/wire.ts'

const aPod = '/api/v1/namespaces/default/pods/a'

void t.test('the hub is alive and ready, online and offline, on every health path', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const paths = ['/livez', '/healthz', '/readyz', '/v1/healthz', '/v1/readyz']
  const healthy = async (): Promise<void> => {
    for (const path of paths) {
      const { status, body } = await hub.ops.get(path)
      const word = path.startsWith('/v1/') ? 'OK' : 'ok' // yurthub's own
      t.strictSame([path, status, body.toString()], [path, 200, word])
    }
  }
  await hub.online()
  await healthy()
  t.match(
    await hub.readyz(),
    /^\[\+\]store ok\n\[\+\]shutdown ok\n\[\+\]certificate ok\n\[\+\]cloud online since .*Z\n\[\+\]upstream http:.* healthy\n(?:\[\+\]listening .*\n)+\[ \]boot .*\nreadyz check passed\n$/,
  )
  await goOffline(cloud, hub)
  await healthy()
  t.match(
    await hub.readyz(),
    /\[ \]cloud offline since .*Z; serving the cache\n\[ \]upstream http:.* unhealthy, last probe: .*\n(?:\[\+\]listening .*\n)+\[ \]boot .*\nreadyz check passed/,
  )
  t.equal((await hub.ops.get('/api/v1/pods')).status, 404, 'objects are not to be had there')
  t.equal((await hub.ops.send('/livez', { method: 'POST' })).status, 405)
})

void t.test('a store that takes no writes makes the hub unready, and recovers', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  t.equal(await hub.metric('nodehub_ready'), 1)
  const kubelet = hub.as('kubelet')
  using busy = refusingDisk()
  t.equal((await kubelet.get(aPod)).status, 200, 'the client is answered all the same')
  const failing = await hub.ops.get('/readyz')
  t.equal(failing.status, 503)
  t.match(failing.body.toString(), /\[-\]store failed: .+\n[^]*readyz check failed/)
  t.equal(await hub.metric('nodehub_ready'), 0)
  t.ok((await hub.metric('nodehub_store_failures_total')) > 0)
  t.match(hub.lines.join(''), /the store failed/)
  t.equal((await hub.ops.get('/livez')).status, 200)
  busy[Symbol.dispose]()
  t.equal((await kubelet.get(aPod)).status, 200)
  t.equal((await hub.ops.get('/readyz')).status, 200)
  await hub.logged('"msg":"the store takes writes again"')
  t.equal(await hub.metric('nodehub_ready'), 1)
  await goOffline(cloud, hub)
  t.equal((await kubelet.get(aPod)).status, 200)
})

void t.test('a hub that stops finishes what is under way, and takes no more', async (t) => {
  const { cloud, hub } = await onlineNodeWith(t, { config: { shutdownGracePeriodMs: 60_000 } }, 'a')
  const kubelet = hub.as('kubelet')
  const frozen = cloud.sandbox.faults.freeze(({ path }) => path === aPod)
  const seen = cloud.sandbox.nextRequest(({ path }) => path === aPod)
  const underWay = kubelet.get(aPod)
  await seen
  const stopped = hub.stop()
  await t.rejects(kubelet.get(podsOfNode), { code: 'ECONNREFUSED' })
  frozen[Symbol.dispose]()
  t.equal((await underWay).status, 200)
  await stopped
})

void t.test('a hub that stops ends its watches cleanly, and does not wait for them', async (t) => {
  const { cloud, hub } = await onlineNodeWith(
    t,
    { config: { shutdownGracePeriodMs: 600_000 } },
    'a',
  )
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const forwarded = await kubelet.watch(podsOfNode, { resourceVersion })
  await goOffline(cloud, hub)
  const fromTheCache = await kubelet.watch(podsOfNode, { resourceVersion })
  await goOnline(cloud, hub)
  const again = await kubelet.watch(podsOfNode, { resourceVersion })
  const ends = [forwarded.rest(), again.rest(), fromTheCache.rest()]
  await hub.stop()
  await Promise.all(ends)
  t.equal(await forwarded.over, 'ended')
  t.equal(await again.over, 'ended')
  t.equal(await fromTheCache.over, 'ended')
})

void t.test('a hub that stops ends requests after its grace period', async (t) => {
  const { cloud, hub } = await onlineNodeWith(t, { config: { shutdownGracePeriodMs: 50 } }, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  using _frozen = cloud.sandbox.faults.freeze(({ path }) => path === aPod)
  const seen = cloud.sandbox.nextRequest(({ path }) => path === aPod)
  const underWay = kubelet.get(aPod)
  const { over } = await seen
  await Promise.all([hub.stop(), t.rejects(underWay), watch.end()])
  if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve))
  t.pass('it has stopped, and asks the cloud for nothing')
})

void t.test('more short requests than it takes at once are shed, watches are not', async (t) => {
  const { cloud, hub } = await onlineNodeWith(t, { flags: ['--max-requests-in-flight=3'] }, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  await hub.answered(({ path }) => path === '/api/v1/pods')
  const frozen = cloud.sandbox.faults.freeze(({ path }) => path === aPod)
  const underWay = []
  for (let i = 0; i < 3; i++) {
    const seen = cloud.sandbox.nextRequest(({ path }) => path === aPod)
    underWay.push(kubelet.get(aPod))
    await seen
  }
  for (const encoding of ['json', 'protobuf'] as const) {
    const shed = await hub.as('kubelet', { encoding }).get(podsOfNode)
    t.match(objectOf(shed), { kind: 'Status', code: 429, reason: 'TooManyRequests' })
    t.equal(shed.headers['retry-after'], '1')
  }
  t.equal(
    await hub.metric('nodehub_requests_rejected_total{reason="in-flight",priority_level="node"}'),
    2,
  )
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  cloud.addPods('b')
  t.equal((await watch.next())?.type, 'ADDED')
  t.equal(await hub.metric('nodehub_watches'), 1)
  frozen[Symbol.dispose]()
  for (const answer of underWay) t.equal((await answer).status, 200)
  await hub.answered(({ path }) => path === aPod)
  t.equal((await kubelet.get(podsOfNode)).status, 200, 'there is room again')
})

void t.test('answers are counted by their source', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet')
  const count = (source: string, code = '200'): Promise<number> =>
    hub.metric(
      `nodehub_requests_total{verb="get",resource="pods",component="kubelet",code="${code}",source="${source}"}`,
    )
  const asked = `nodehub_upstream_request_duration_seconds_count{upstream="${cloud.url}"}`
  const before = await hub.metric(asked)
  await kubelet.get(aPod)
  await kubelet.get(aPod)
  t.ok((await hub.metric(asked)) >= before + 2)
  t.equal(await hub.metric('nodehub_online'), 1)
  await goOffline(cloud, hub)
  await kubelet.get(aPod)
  await kubelet.get('/api/v1/namespaces/default/pods/nowhere')
  t.strictSame([await count('cloud'), await count('cache'), await count('hub', '503')], [2, 1, 1])
  t.equal(await hub.metric('nodehub_online'), 0)
  t.equal(await hub.metric(`nodehub_upstream_healthy{upstream="${cloud.url}"}`), 0)
  for (const [source, answers] of [
    ['cloud', 2],
    ['cache', 1],
    ['hub', 1],
  ] as const) {
    const timed = `nodehub_request_duration_seconds_count{verb="get",source="${source}"}`
    await hub.reaches(timed, answers)
  }
  const line = await hub.answered(({ source }) => source === 'cache')
  t.match(line, { method: 'GET', path: aPod, component: 'kubelet', code: 200 })
  t.ok((await hub.answered(({ code }) => code === 503)).why, 'what fails has a reason')
  await hub.ops.send('/metrics', { headers: { host: 'elsewhere.example' } })
  await hub.logged('"why":"the Host of the request is not a name of this host"')
})

void t.test('metrics show the version and the connections cut', async (t) => {
  const { hub } = await onlineNode(t)
  const { node } = process.versions
  t.equal(await hub.metric(`nodehub_build_info{version="${ownVersion()}",node="${node}"}`), 1)
  await hub.logged(`"listener":"ops","address":"127.0.0.1:${hub.hub.opsPort}","msg":"listening"`)
  await hub.logged('"msg":"ready"')
  const cut = 'nodehub_connections_cut_total{reason="pipelined"}'
  for (const [at, [port, pipelined]] of [
    [hub.hub.proxyPort, limits.pipelined] as const,
    [hub.hub.opsPort, mostPipelined] as const,
  ].entries()) {
    const client = await dial(t, port)
    client.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(pipelined + 1))
    await client.ended
    t.equal(await hub.metric(cut), at + 1)
  }
})

void t.test(
  'counters of an API server and of filters begin at 0, before the first event',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    const { body } = await hub.ops.get('/metrics')
    const lines = body.toString().split('\n')
    for (const series of [
      `nodehub_upstream_requests_total{upstream="${cloud.url}",outcome="failed"}`,
      'nodehub_filter_errors_total{filter="masterservice"}',
      'nodehub_filter_decisions_total{filter="masterservice",result="withheld"}',
    ]) {
      t.ok(lines.includes(`${series} 0`), series)
    }
  },
)

void t.test('no line of any level shows a token', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  const token = cloud.sandbox.token('somebody')
  const bearer = hub.as('kubelet', { token })
  await bearer.get(podsOfNode)
  await bearer.get(`${aPod}?token=${token}`)
  await bearer.send(aPod, { method: 'DELETE' })
  await bearer.get('/api/v1/%2e%2e/pods')
  {
    using _cut = cloud.sandbox.faults.cut(10)
    await bearer.get('/api/v1/services').catch(() => undefined)
  }
  await goOffline(cloud, hub)
  await bearer.get(podsOfNode)
  await bearer.send(aPod, { method: 'DELETE' })
  await hub.stop()
  t.ok(hub.lines.length > 5, 'lines of every level were kept')
  t.notMatch(hub.lines.join(''), token)
  t.notMatch(JSON.stringify(hub.answers), token)
})

void t.test('a state folder that is removed under the hub makes it unready', async (t) => {
  const { hub } = await onlineNode(t)
  t.equal((await hub.ops.get('/readyz')).status, 200)
  rmSync(hub.config.cachePath, { recursive: true })
  const gone = await hub.ops.get('/readyz')
  t.equal(gone.status, 503)
  t.match(
    gone.body.toString(),
    /\[-\]store failed: .*\/cache was removed or replaced under the hub/,
  )
  mkdirSync(hub.config.cachePath)
  t.equal((await hub.ops.get('/readyz')).status, 503, 'another one is not the same')
})
