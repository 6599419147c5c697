/** Another cluster behind the same address: built anew, or the node has joined another one. */
import t, { type Test } from 'tap'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import { objectOf, type Client } from '../kit/client.ts'
import {
  configMaps,
  podsOfNode,
  secrets,
  service,
  services,
  startCloud,
  type CloudServer,
} from '../kit/cloud.ts'
import { freePort } from '../kit/free-port.ts'
import { startOnlineHub, goOnline, goOffline, type TestHub } from '../kit/hub.ts'

t.setTimeout(60_000)

const secret = '/api/v1/namespaces/default/secrets/of-both'
const onlyInFirst = '/api/v1/namespaces/default/configmaps/of-the-first'
const allConfigMaps = '/api/v1/namespaces/default/configmaps'

const inBase64 = (text: string): string => Buffer.from(text).toString('base64')

/** A cluster whose Secret and pod tell its name. */
async function cluster(t: Test, port: number, name: string): Promise<CloudServer> {
  const cloud = await startCloud(t, { port })
  const namespace = 'default'
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  cloud.sandbox.create(secrets, {
    metadata: { name: 'of-both', namespace },
    data: { value: inBase64(name) },
  })
  cloud.addPods(`pod-of-${name}`)
  return cloud
}

const podsSeen = async (kubelet: Client): Promise<readonly string[]> =>
  listAt(objectOf(await kubelet.get(podsOfNode)), 'items').map((each) =>
    textAt(each, 'metadata', 'name'),
  )

/** A hub that has recorded a first cluster, which is gone, and stopped. */
async function recordedFirst(t: Test): Promise<{ hub: TestHub; port: number }> {
  const port = await freePort()
  const first = await cluster(t, port, 'first')
  first.sandbox.create(configMaps, { metadata: { name: 'of-the-first', namespace: 'default' } })
  const hub = await startOnlineHub(t, { upstreams: [first] })
  const kubelet = hub.as('kubelet')
  for (const path of [secret, onlyInFirst, allConfigMaps, podsOfNode]) await kubelet.get(path)
  await goOffline(first, hub)
  t.equal((await kubelet.get(secret)).status, 200)
  await hub.stop()
  await first.sandbox[Symbol.asyncDispose]()
  return { hub, port }
}

const dropped = 'this is another cluster than the one whose answers were recorded'

const isDropped = ({ lines }: TestHub): boolean => lines.some((line) => line.includes(dropped))

void t.test('a hub started beside another cluster has no record of the first', async (t) => {
  const { hub, port } = await recordedFirst(t)
  const second = await cluster(t, port, 'second')
  await hub.start()
  await hub.online()
  await hub.logged(dropped)
  const kubelet = hub.as('kubelet')
  t.equal((await kubelet.get(podsOfNode)).status, 200)
  await goOffline(second, hub)
  for (const path of [secret, onlyInFirst, allConfigMaps])
    t.equal((await kubelet.get(path)).status, 503, path)
  t.strictSame(await podsSeen(kubelet), ['pod-of-second'])
  await goOnline(second, hub)
  t.equal(textAt(objectOf(await kubelet.get(secret)), 'data', 'value'), inBase64('second'))
  await goOffline(second, hub)
  await hub.restart()
  await hub.offline()
  t.equal(
    textAt(objectOf(await hub.as('kubelet').get(secret)), 'data', 'value'),
    inBase64('second'),
  )
  t.equal(hub.lines.filter((line) => line.includes(dropped)).length, 1)
})

void t.test('a hub started offline drops the first cluster once it knows the second', async (t) => {
  const { hub, port } = await recordedFirst(t)
  await hub.start()
  await hub.offline()
  const kubelet = hub.as('kubelet')
  t.equal((await kubelet.get(secret)).status, 200, 'which cluster comes is not known')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  const second = await cluster(t, port, 'second')
  await hub.online()
  t.ok(isDropped(hub))
  await watch.end()
  t.strictSame(await podsSeen(kubelet), ['pod-of-second'])
  await goOffline(second, hub)
  t.equal((await kubelet.get(secret)).status, 503)
})

void t.test('the same cluster keeps its records, one that hides its UID as well', async (t) => {
  const port = await freePort()
  const cloud = await cluster(t, port, 'first')
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  await hub.as('kubelet').get(secret)
  await hub.restart()
  await hub.online()
  cloud.sandbox.delete(services, 'kubernetes', 'default')
  await hub.restart()
  await hub.online()
  await goOffline(cloud, hub)
  t.equal((await hub.as('kubelet').get(secret)).status, 200)
  t.notOk(isDropped(hub))
})
