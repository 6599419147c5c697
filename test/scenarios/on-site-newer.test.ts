/** What a person who has read before is shown offline, where components have read since. */
import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt, withAt } from '../../src/api/kube/json-at.ts'
import { objectOf, tableAccept, warningOf, type Answer } from '../kit/client.ts'
import { allServices, pod, pods, podsOfNode, service, services } from '../kit/cloud.ts'
import { goOffline, startCloud, startTestHub, type CloudServer } from '../kit/hub.ts'

const skip = process.getuid?.() === 0 ? false : 'only root has another user to be compared with'

const allPods = '/api/v1/pods'
const podA = '/api/v1/namespaces/default/pods/a'

const nameIn = (row: string): string => row.split(' ')[0] ?? ''

/** Name and phase of each pod of a list or Table. */
function phases(answer: Answer): readonly string[] {
  const body = objectOf(answer)
  return textAt(body, 'kind') === 'Table'
    ? listAt(body, 'rows').map((row) => {
        const [name = '', , phase = ''] = listAt(row, 'cells') as readonly string[]
        return `${name} ${phase}`
      })
    : listAt(body, 'items').map(
        (item) => `${textAt(item, 'metadata', 'name')} ${textAt(item, 'status', 'phase')}`,
      )
}

function setPhase(cloud: CloudServer, name: string, phase: string): void {
  const now = cloud.sandbox.get(pods, name, 'default')
  cloud.sandbox.update(pods, { ...now, status: { phase } } as JsonObject, 'status')
}

async function remove(cloud: CloudServer, name: string): Promise<void> {
  const path = `/api/v1/namespaces/default/services/${name}`
  const { status } = await cloud.as('kubectl').send(path, { method: 'DELETE' })
  if (status !== 200) throw new Error(`the removal was answered ${status}`)
}

for (const [form, accept] of [
  ['a Table', tableAccept],
  ['objects', 'application/json'],
] as const) {
  void t.test(`a list of ${form} has what a component has read since`, { skip }, async (t) => {
    const cloud = await startCloud(t)
    const elsewhere = { nodeName: 'edge-2', containers: [{ name: 'main', image: 'main' }] }
    cloud.sandbox.create(pods, pod('b', { spec: elsewhere }))
    cloud.sandbox.create(pods, pod('c'))
    for (const name of ['b', 'c']) setPhase(cloud, name, 'Pending')
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const kubectl = hub.as('kubectl', { accept })
    const before = await kubectl.get(allPods)
    t.strictSame(phases(before), ['b Pending', 'c Pending'])
    setPhase(cloud, 'b', 'Running')
    setPhase(cloud, 'c', 'Running')
    cloud.sandbox.create(pods, pod('a'))
    setPhase(cloud, 'a', 'Succeeded')
    await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
    await goOffline(cloud, hub)

    const offline = await kubectl.get(allPods)
    t.strictSame(phases(offline), ['a Succeeded', 'b Pending', 'c Running'])
    t.equal(
      textAt(objectOf(offline), 'metadata', 'resourceVersion'),
      textAt(objectOf(before), 'metadata', 'resourceVersion'),
      'from which a watch misses nothing',
    )
    t.match(warningOf(offline), /; as components of this node have read it"$/)
  })

  void t.test(`one of ${form} is the newest that is recorded`, { skip }, async (t) => {
    const cloud = await startCloud(t)
    cloud.sandbox.create(pods, pod('a'))
    cloud.sandbox.create(services, service('s', '10.0.0.9'))
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const kubectl = hub.as('kubectl', { accept })
    t.equal((await kubectl.get(podA)).status, 200)
    t.equal((await kubectl.get('/api/v1/namespaces/default/services/s')).status, 200)
    setPhase(cloud, 'a', 'Running')
    await remove(cloud, 's')
    const kubelet = hub.as('kubelet', { encoding: 'protobuf' })
    await kubelet.list(podsOfNode)
    await kubelet.list(allServices)
    await goOffline(cloud, hub)

    const offline = await kubectl.get(podA)
    t.match(offline.body.toString(), /"Running"/)
    t.match(warningOf(offline), /; as components of this node have read it"$/)
    t.equal(
      (await kubectl.get('/api/v1/namespaces/default/services/s')).status,
      404,
      'a newer list of all services lacks it',
    )
  })

  void t.test(`a newer list of all takes the place of ${form}`, { skip }, async (t) => {
    const cloud = await startCloud(t)
    for (const name of ['gone', 'stays'])
      cloud.sandbox.create(services, service(name, name === 'gone' ? '10.0.0.8' : '10.0.0.9'))
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const kubectl = hub.as('kubectl', { accept })
    t.match((await kubectl.get(allServices)).body.toString(), /"gone"/)
    await remove(cloud, 'gone')
    const { resourceVersion } = await hub.as('kubelet', { encoding: 'protobuf' }).list(allServices)
    await goOffline(cloud, hub)

    const offline = await kubectl.get(allServices)
    t.notMatch(offline.body.toString(), /"gone"/)
    t.match(offline.body.toString(), /"stays"/)
    t.equal(textAt(objectOf(offline), 'metadata', 'resourceVersion'), resourceVersion)
  })

  void t.test(`objects deleted or no longer selected are not in ${form}`, { skip }, async (t) => {
    const cloud = await startCloud(t)
    const elsewhere = { nodeName: 'edge-2', containers: [{ name: 'main', image: 'main' }] }
    const ofShop = (name: string, rest?: JsonObject): JsonObject =>
      withAt(pod(name, rest), ['metadata', 'labels'], { app: 'shop' })
    for (const name of ['deleted', 'followed', 'moved', 'relabelled', 'stays'])
      cloud.sandbox.create(pods, ofShop(name))
    cloud.sandbox.create(pods, ofShop('elsewhere', { spec: elsewhere }))
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const kubectl = hub.as('kubectl', { accept })
    const ofApp = `${allPods}?labelSelector=app%3Dshop`
    const all = ['deleted', 'elsewhere', 'followed', 'moved', 'relabelled', 'stays']
    for (const path of [allPods, ofApp])
      t.strictSame(phases(await kubectl.get(path)).map(nameIn), all)
    t.equal((await kubectl.get('/api/v1/namespaces/default/pods/deleted')).status, 200)
    for (const name of ['deleted', 'elsewhere', 'followed', 'moved'])
      cloud.sandbox.delete(pods, name, 'default', { gracePeriodSeconds: 0 })
    // To another node, whose pods the kubelet of this one does not read.
    for (const name of ['followed', 'moved'])
      cloud.sandbox.create(pods, ofShop(name, { spec: elsewhere }))
    await hub.as('kube-proxy').get('/api/v1/namespaces/default/pods/followed')
    const relabelled = cloud.sandbox.get(pods, 'relabelled', 'default') as JsonObject
    cloud.sandbox.update(pods, withAt(relabelled, ['metadata', 'labels'], { app: 'other' }))
    await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
    await goOffline(cloud, hub)

    t.strictSame(
      phases(await kubectl.get(ofApp)).map(nameIn),
      ['elsewhere', 'followed', 'stays'],
      'of another node is known what a component has read',
    )
    const offline = await kubectl.get(allPods)
    t.strictSame(phases(offline).map(nameIn), ['elsewhere', 'followed', 'relabelled', 'stays'])
    t.match(warningOf(offline), /; as components of this node have read it"$/)
    t.equal((await kubectl.get('/api/v1/namespaces/default/pods/deleted')).status, 404)
  })

  void t.test(`where nothing is newer, ${form} are as they were read`, { skip }, async (t) => {
    const cloud = await startCloud(t)
    cloud.sandbox.create(pods, pod('a'))
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
    const kubectl = hub.as('kubectl', { accept })
    const before = [await kubectl.get(allPods), await kubectl.get(podA)]
    await goOffline(cloud, hub)
    const after = [await kubectl.get(allPods), await kubectl.get(podA)]
    t.strictSame(after.map(objectOf), before.map(objectOf))
    for (const each of after) t.notMatch(warningOf(each), /have read it/)
    t.ok(valueAt(objectOf(after[0] as Answer), 'metadata', 'resourceVersion'))
  })
}
