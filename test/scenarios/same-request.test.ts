import t from 'tap'
import { objectOf, type Client } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import {
  onlineNodeWith,
  startCloud,
  startOnlineHub,
  startTestHub,
  type CloudServer,
} from '../kit/hub.ts'
import { refusingOrigin } from '../kit/wire/upstream.ts'

/** With it a hub hears only of its callers that the cloud is gone. */
const config = {
  heartbeat: { intervalMs: 3_600_000, timeoutMs: 300, failedRetry: 1_000, healthyThreshold: 1 },
}

const aPod = '/api/v1/namespaces/default/pods/a'

async function fill(kubelet: Client): Promise<readonly Buffer[]> {
  const answers = [
    await kubelet.get(aPod),
    await kubelet.get(podsOfNode),
    await kubelet.get('/api'),
  ]
  return answers.map(({ body }) => body)
}

/** How an API server dies. */
const deaths: Readonly<Record<string, (cloud: CloudServer) => Promise<void> | void>> = {
  'refuses connections': (cloud) => cloud.unplug(),
  'resets connections': (cloud) => void cloud.sandbox.faults.reset(),
  freezes: (cloud) => void cloud.sandbox.faults.freeze(),
}

for (const [what, strike] of Object.entries(deaths)) {
  void t.test(`reads are answered in the same exchange where the cloud ${what}`, async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { config }, 'a', 'b')
    const kubelet = hub.as('kubelet')
    const before = await fill(kubelet)
    const { resourceVersion } = await kubelet.list(podsOfNode)
    await strike(cloud)
    t.equal(hub.hub.online(), true)
    const [after, watch] = await Promise.all([
      Promise.all([kubelet.get(aPod), kubelet.get(podsOfNode), kubelet.get('/api')]),
      kubelet.watch(podsOfNode, { resourceVersion, timeoutSeconds: '1' }),
    ])
    t.strictSame(
      after.map(({ body }) => body),
      before,
    )
    t.equal(watch.status, 200)
    watch.hangUp()
    t.equal(hub.hub.online(), true, 'a request alone is no verdict')
  })
}

void t.test(
  'a write that no API server can have seen is answered as offline, a sent one is not',
  async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { config })
    const kubelet = hub.as('kubelet')
    const event = {
      method: 'POST',
      body: { kind: 'Event', apiVersion: 'v1', metadata: { name: 'a.1', namespace: 'default' } },
    }
    const events = '/api/v1/namespaces/default/events'
    {
      using _reset = cloud.sandbox.faults.reset(({ method }) => method === 'POST')
      const sent = await kubelet.send(events, event)
      t.match(objectOf(sent), { code: 503, reason: 'ServiceUnavailable' })
      t.equal(
        cloud.sandbox.requests.filter(({ method }) => method === 'POST').length,
        1,
        'sent once',
      )
    }
    await cloud.unplug()
    const refused = await kubelet.send(events, event)
    t.equal(refused.status, 201)
    t.equal((await kubelet.send(aPod, { method: 'DELETE' })).status, 503)
  },
)

void t.test(
  'a write without a body that was sent is never sent again, though an API server answers probes',
  async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { config }, 'a')
    const kubelet = hub.as('kubelet')
    await fill(kubelet)
    // A body that was read could not be sent again in any case: these have none.
    for (const [method, path] of [
      ['DELETE', aPod],
      ['DELETE', podsOfNode],
      ['POST', '/api/v1/namespaces/default/configmaps'],
      ['PUT', aPod],
      ['PATCH', aPod],
    ] as const) {
      using _reset = cloud.sandbox.faults.reset((request) => request.method === method)
      const before = cloud.sandbox.requests.filter((request) => request.method === method).length
      const broken = await kubelet.send(path, { method })
      t.match(
        objectOf(broken),
        { code: 503, reason: 'ServiceUnavailable', message: /whether it took effect is unknown/ },
        `${method} ${path}`,
      )
      t.notOk(broken.headers['retry-after'], 'client-go would send it again')
      t.equal(
        cloud.sandbox.requests.filter((request) => request.method === method).length,
        before + 1,
        `${method} ${path} is sent once`,
      )
    }
    t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 0)
  },
)

void t.test(
  'a read that breaks off in the middle is answered from the cache, unless it is consistent',
  async (t) => {
    const { cloud, hub } = await onlineNodeWith(t, { config }, 'a')
    const kubelet = hub.as('kubelet')
    const before = await fill(kubelet)
    using _cut = cloud.sandbox.faults.cut(50)
    t.strictSame((await kubelet.get(`${aPod}?resourceVersion=0`)).body, before[0])
    t.strictSame((await kubelet.get('/api')).body, before[2])
    t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 2)
    for (const path of [aPod, podsOfNode]) {
      t.match(
        objectOf(await kubelet.get(path)),
        { code: 503 },
        'the most recent only the cloud knows',
      )
    }
  },
)

void t.test('a watch of the cache goes on with the cloud, without a verdict on it', async (t) => {
  const { cloud, hub } = await onlineNodeWith(t, { config }, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  await cloud.unplug()
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  await cloud.plug()
  cloud.addPods('b')
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
  t.equal(hub.hub.online(), true, 'no verdict has fallen')
})

void t.test(
  'a hub that starts without the cloud waits for one probe, and then answers',
  async (t) => {
    const hub = await startTestHub(t, { upstreams: [{ url: await refusingOrigin() }] })
    const answer = await hub.as('kubelet').get(podsOfNode)
    t.equal(answer.status, 503)
    t.equal(hub.hub.online(), false)
  },
)

void t.test(
  'a consistent read goes to an API server that answers probes, or is refused',
  async (t) => {
    const [first, second] = [await startCloud(t), await startCloud(t)]
    first.addPods('a')
    second.addPods('a')
    const hub = await startOnlineHub(t, {
      upstreams: [first, second],
      flags: ['--lb-mode=priority'],
      config,
    })
    const kubelet = hub.as('kubelet')
    await fill(kubelet)
    await first.unplug()
    {
      using _broken = second.sandbox.faults.reset(({ path }) => path !== '/readyz')
      for (const path of [aPod, podsOfNode]) {
        t.match(
          objectOf(await kubelet.get(path)),
          { code: 503, reason: 'ServiceUnavailable' },
          path,
        )
      }
      t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 0)
      t.equal((await kubelet.get(`${aPod}?resourceVersion=0`)).status, 200)
      t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 1)
    }
    t.equal((await kubelet.get(aPod)).status, 200)
    t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 1, 'it was the cloud')
    await second.unplug()
    t.equal((await kubelet.get(aPod)).status, 200)
    t.equal(await hub.metric('nodehub_cache_fallbacks_total'), 2, 'no API server answers a probe')
  },
)
