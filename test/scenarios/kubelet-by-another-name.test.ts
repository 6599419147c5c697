/**
 * A kubelet that is compiled into another program (`kubelite` of microk8s, `k3s`) is the kubelet by
 * the node's credentials and by what it reads.
 */
import t from 'tap'
import { textAt } from '../../src/api/kube/json-at.ts'
import { configMaps, nodeName, podsOfNode, service, services, startCloud } from '../kit/cloud.ts'
import { objectOf } from '../kit/client.ts'
import { startOnlineHub, onlineNode, goOnline, goOffline } from '../kit/hub.ts'
import { reachable, reachableHost } from '../kit/reachable.ts'

t.setTimeout(60_000)

const itsNode = `/api/v1/nodes?fieldSelector=metadata.name%3D${nodeName}`
const configMap = '/api/v1/namespaces/default/configmaps/of-a-pod'

void t.test('its reads are recorded, and it boots offline', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  cloud.addPods('web')
  cloud.sandbox.create(configMaps, { metadata: { name: 'of-a-pod', namespace: 'default' } })
  for (const name of ['kubelite', 'k3s', '']) {
    const kubelet = hub.as(name)
    const reads = [itsNode, podsOfNode, configMap, '/api/v1/services']
    for (const path of reads) t.equal((await kubelet.get(path)).status, 200)
    const line = await hub.answered(({ path }) => path.startsWith('/api/v1/services'))
    t.equal(line.component, 'kubelet')
    await goOffline(cloud, hub)
    for (const path of reads) t.equal((await kubelet.get(path)).status, 200, `${name} ${path}`)
    await goOnline(cloud, hub)
  }
  t.notOk(hub.lines.some((line) => line.includes('is not recorded')))
})

void t.test('filters act for it', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  const hub = await startOnlineHub(t, { upstreams: [cloud], ...(await reachable(t)) })
  const address = async (name: string): Promise<string> => {
    const answer = await hub.as(name).get('/api/v1/namespaces/default/services/kubernetes')
    return textAt(objectOf(answer), 'spec', 'clusterIP')
  }
  t.equal(await address('kubelite'), '10.96.0.1', 'before it has read the node or its pods')
  await hub.as('kubelite').get(podsOfNode)
  t.equal(await address('kubelite'), await address('kubelet'))
  t.equal(await address('kubelet'), reachableHost)
})

void t.test('a program that is known by its name keeps it, and another is named', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  await hub.as('curl').get(podsOfNode)
  await hub.logs(() =>
    hub.lines.some((line) => line.includes('"component":"curl"') && line.includes('not recorded')),
  )
  await hub.as('agent').get('/api/v1/services')
  t.equal((await hub.answered(({ component }) => component === 'agent')).code, 200)
  const token = cloud.sandbox.token('someone')
  await hub.as('other', { token }).get(podsOfNode)
  const line = await hub.answered(({ component }) => component === 'other')
  t.equal(line.code, 200, 'with credentials of its own')
})
