import dns, { type LookupAddress } from 'node:dns'
import t from 'tap'
import { podsOfNode } from '../kit/cloud.ts'
import { startOnlineHub, startCloud, startTestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'
import { slowLink } from '../kit/wire/slow-link.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const heartbeat = { intervalMs: 60, timeoutMs: 400, failedRetry: 2, healthyThreshold: 1 }

type Answer = (error: Error | null, found: readonly LookupAddress[]) => void
type Resolver = (answer: Answer) => void

const answering =
  (...addresses: readonly string[]): Resolver =>
  (answer) =>
    answer(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )

const failing: Resolver = (answer) =>
  answer(Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }), [])

const silent: Resolver = () => undefined

/** The resolver of this process, for one name. */
function resolver(t: Teardown, name: string, first: Resolver): { use(next: Resolver): void } {
  const original = dns.lookup
  let resolve = first
  const stub = (host: string, ...rest: readonly unknown[]): void => {
    if (host !== name) return void Reflect.apply(original, dns, [host, ...rest])
    const done = rest.at(-1) as (...result: readonly unknown[]) => void
    const isAll = (rest[0] as { all?: boolean }).all === true
    resolve((error, found) =>
      setImmediate(() => {
        if (error) done(error)
        else if (isAll) done(null, found)
        else done(null, found[0]?.address, found[0]?.family)
      }),
    )
  }
  Object.assign(dns, { lookup: stub })
  t.teardown(() => void Object.assign(dns, { lookup: original }))
  return { use: (next) => void (resolve = next) }
}

for (const [what, broken] of Object.entries({ 'fails at once': failing, 'is silent': silent })) {
  void t.test(`the hub stays online while the resolver ${what}`, async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const name = `api-${broken.name}.test`
    const names = resolver(t, name, answering('127.0.0.1'))
    const url = `http://${name}:${new URL(cloud.url).port}`
    const hub = await startOnlineHub(t, { upstreams: [{ url }], config: { heartbeat } })
    const kubelet = hub.as('kubelet')
    const { resourceVersion } = await kubelet.list(podsOfNode)
    const watch = await kubelet.watch(podsOfNode, { resourceVersion })
    names.use(broken)
    let probes = 0
    using _seen = cloud.sandbox.faults.delay(0, ({ path }) => {
      if (path === '/readyz') probes += 1
      return false
    })
    const wasOffline = hub.offline().then(() => 'offline' as const)
    const probed = until('probes without a resolver', async () => probes >= 6)
    t.not(await Promise.race([probed, wasOffline]), 'offline')
    cloud.addPods('b')
    t.match((await watch.nextChange())?.object, { metadata: { name: 'b' } })
    t.equal((await kubelet.get(`${podsOfNode}&limit=1`)).headers['warning'], undefined)
    watch.hangUp()
  })
}

void t.test('a link with a long delay is online, though all together takes longer', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  const { port } = await slowLink(t, Number(new URL(cloud.url).port), 130)
  Object.defineProperty(cloud, 'url', { value: `https://127.0.0.1:${port}` })
  const hub = await startOnlineHub(t, { upstreams: [cloud], config: { heartbeat } })
  t.equal(hub.hub.online(), true)
  t.equal((await hub.as('kubelet').get('/api/v1/nodes/edge-1')).status, 200)
})

void t.test('where a link is slower still the message names the flag', async (t) => {
  const cloud = await startCloud(t)
  const { port } = await slowLink(t, Number(new URL(cloud.url).port), 300)
  const hub = await startTestHub(t, {
    upstreams: [{ url: `http://127.0.0.1:${port}` }],
    config: { heartbeat },
  })
  await hub.logged('give more with --heartbeat-timeout-seconds')
  t.not(hub.hub.online(), true)
})

void t.test('an address is not given up where another one does not answer either', async (t) => {
  const cloud = await startCloud(t)
  // Of these addresses only the last is listened on.
  const name = 'api-many.test'
  const names = resolver(t, name, answering('::1', '127.0.0.3', '127.0.0.1'))
  const url = `http://${name}:${new URL(cloud.url).port}`
  const hub = await startOnlineHub(t, { upstreams: [{ url }], config: { heartbeat } })
  names.use(failing)
  t.equal((await hub.as('kubelet').get('/api/v1/nodes/edge-1')).status, 200)
})
