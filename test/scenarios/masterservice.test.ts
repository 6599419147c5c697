import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { nameOf, objectOf, tableAccept, type Client, withInitialEvents } from '../kit/client.ts'
import { allServices, service, services } from '../kit/cloud.ts'
import {
  startOnlineHub,
  goOffline,
  startCloud,
  type CloudServer,
  type TestHub,
} from '../kit/hub.ts'
import { reachable, reachableHost } from '../kit/reachable.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const kubernetes = '/api/v1/namespaces/default/services/kubernetes'

async function cloudWithServices(t: Teardown): Promise<CloudServer> {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.2', 'kube-system'))
  cloud.sandbox.create(services, service('web', '10.96.0.3'))
  return cloud
}

/** Where each service is said to be, by what was answered. */
const places = (list: JsonObject): Record<string, unknown> =>
  Object.fromEntries(
    (list['items'] as readonly JsonObject[]).map((each) => [nameOf(each), placeOf(each)]),
  )

const placeOf = (each: JsonObject): string => {
  const { clusterIP, clusterIPs, ports } = each['spec'] as {
    clusterIP: string
    clusterIPs: readonly string[]
    ports: readonly { port: number }[]
  }
  return `${clusterIP} ${clusterIPs.join()} ${ports[0]?.port}`
}

const original = {
  'default/kubernetes': '10.96.0.1 10.96.0.1 443',
  'default/web': '10.96.0.3 10.96.0.3 443',
  'kube-system/kubernetes': '10.96.0.2 10.96.0.2 443',
}

const shownBy = ({ hub }: TestHub) => ({
  ...original,
  'default/kubernetes': `${reachableHost} ${reachableHost} ${hub.proxySecurePort}`,
})

/** All that a client can be shown of services, whichever way it asks. */
async function looks(client: Client): Promise<unknown[]> {
  const list = await client.get(allServices)
  const got = await client.get(kubernetes)
  const watch = await client.watch(allServices, withInitialEvents)
  const events = await watch.take(4)
  watch.hangUp()
  const watched = { items: events.slice(0, 3).map(({ object }) => object) }
  return [places(objectOf(list)), placeOf(objectOf(got)), places(watched)]
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`pods are led to the hub, online and offline: ${encoding}`, async (t) => {
    const cloud = await cloudWithServices(t)
    const hub = await startOnlineHub(t, { upstreams: [cloud], ...(await reachable(t)) })
    const shown = shownBy(hub)
    const kubelet = hub.as('kubelet', { encoding })
    const proxy = hub.as('kube-proxy', { encoding })
    const look = [shown, shown['default/kubernetes'], shown]
    const unchanged = [original, original['default/kubernetes'], original]
    t.strictSame(await looks(kubelet), look)
    t.strictSame(await looks(proxy), unchanged, 'to others it is what it was')
    await goOffline(cloud, hub)
    t.strictSame(await looks(kubelet), look)
    t.strictSame(await looks(proxy), unchanged)
  })

  void t.test(`a watch event shows a service as a list does: ${encoding}`, async (t) => {
    const cloud = await cloudWithServices(t)
    const hub = await startOnlineHub(t, { upstreams: [cloud], ...(await reachable(t)) })
    // Until then its address may change, for another filter, and a client lists once more.
    await until('the ClusterIP of default/kubernetes to be known', async () => {
      const { body } = await hub.ops.get('/readyz?verbose')
      return !String(body).includes('forwardkubesvctraffic does nothing')
    })
    const kubelet = hub.as('kubelet', { encoding })
    const { resourceVersion } = await kubelet.list(allServices)
    const watch = await kubelet.watch(allServices, { resourceVersion })
    cloud.touch(services, 'kubernetes', 'default')
    cloud.touch(services, 'web', 'default')
    const [first, second] = await watch.take(2)
    t.equal(placeOf(first?.object ?? {}), shownBy(hub)['default/kubernetes'])
    t.equal(first?.type, 'MODIFIED')
    t.equal(placeOf(second?.object ?? {}), original['default/web'])
    const direct = cloud.as('kubelet', { encoding })
    const untouched = await direct.watch(allServices, { resourceVersion })
    const [, web] = await untouched.take(2)
    t.strictSame(second?.frame, web?.frame, 'what is not changed leaves in the bytes it came in')
  })
}

void t.test('nothing else of the answer is changed, unknown fields least of all', async (t) => {
  const cloud = await cloudWithServices(t)
  const hub = await startOnlineHub(t, { upstreams: [cloud], ...(await reachable(t)) })
  for (const path of [allServices, kubernetes]) {
    const direct = (await cloud.as('kubelet').get(path)).body.toString()
    const through = (await hub.as('kubelet').get(path)).body.toString()
    const expected = direct
      .replace('"port":443', `"port":${hub.hub.proxySecurePort}`)
      .replaceAll('"10.96.0.1"', `"${reachableHost}"`)
    t.equal(through, expected)
  }
  const table = hub.as('kubelet', { accept: tableAccept })
  const rows = cloud.as('kubelet', { accept: tableAccept })
  t.strictSame((await table.get(allServices)).body, (await rows.get(allServices)).body)
})

void t.test(
  'where pods cannot reach the hub the filter does nothing, and reports why',
  async (t) => {
    const cloud = await cloudWithServices(t)
    const { flags, config } = await reachable(t)
    const [, ...withoutAuthority] = flags
    const ownCertificate = flags.slice(0, 1)
    for (const [options, why] of [
      [{}, 'there is no --hub-address'],
      [{ flags, config: { pods: { ...config.pods, hostNetworkNode: false } } }, 'is on loopback'],
      [{ flags: withoutAuthority, config }, 'name no authority'],
      [{ flags: ownCertificate, config }, 'not one that pods trust'],
    ] as const) {
      const hub = await startOnlineHub(t, { upstreams: [cloud], ...options })
      const direct = await cloud.as('kubelet').get(allServices)
      t.strictSame((await hub.as('kubelet').get(allServices)).body, direct.body, why)
      t.match(hub.lines.join(''), why, 'in the log')
      const ready = await hub.ops.get('/readyz?verbose')
      t.equal(ready.status, 200)
      const isWanted = 'config' in options
      t.equal(ready.body.toString().includes('hub-address'), isWanted)
      if (isWanted) t.match(ready.body.toString(), why, 'in readiness')
      t.equal(await hub.metric('nodehub_hub_address_reachable'), 0)
    }
  },
)

void t.test('a certificate that comes and goes is noticed', async (t) => {
  const cloud = await cloudWithServices(t)
  const { flags, config, files } = await reachable(t)
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags, config })
  const kubelet = hub.as('kubelet')
  const look = async (): Promise<unknown> => placeOf(objectOf(await kubelet.get(kubernetes)))
  t.equal(await look(), shownBy(hub)['default/kubernetes'])
  t.equal(await hub.metric('nodehub_hub_address_reachable'), 1)
  await files.issue({ ipAddresses: ['192.0.2.1'] })
  await hub.logged('does not name 127.0.0.1')
  t.equal(await look(), original['default/kubernetes'])
  t.equal(await hub.metric('nodehub_hub_address_reachable'), 0)
  hub.lines.length = 0
  await files.issue({ ipAddresses: [reachableHost] })
  await hub.logged('pods are led to the hub')
  t.equal(await look(), shownBy(hub)['default/kubernetes'])
})

void t.test('the filter can be disabled', async (t) => {
  const cloud = await cloudWithServices(t)
  for (const flag of [
    '--disabled-resource-filters=masterservice',
    '--disabled-resource-filters=*',
    '--enable-resource-filter=false',
  ]) {
    const { flags, config } = await reachable(t)
    const hub = await startOnlineHub(t, { upstreams: [cloud], flags: [...flags, flag], config })
    const direct = await cloud.as('kubelet').get(allServices)
    t.strictSame((await hub.as('kubelet').get(allServices)).body, direct.body, flag)
  }
})
