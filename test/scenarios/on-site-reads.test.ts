import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import type { Json } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { objectOf, tableAccept, warningOf, type Answer } from '../kit/client.ts'
import {
  allServices,
  configMaps,
  nodeName,
  pod,
  pods,
  podsOfNode,
  secrets,
  serviceAccounts,
} from '../kit/cloud.ts'
import {
  startOnlineHub,
  onlineNode,
  goOnline,
  rootFolder,
  goOffline,
  startCloud,
  startTestHub,
} from '../kit/hub.ts'
import { requestAs } from '../kit/other-user.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' }

const skip = process.getuid?.() === 0 ? false : 'only root has another user to be compared with'

const allPods = '/api/v1/pods'
const podsOfDefault = '/api/v1/namespaces/default/pods'
const mapsOfDefault = '/api/v1/namespaces/default/configmaps'

const status = { phase: 'Succeeded' }

/** The cells of a Table's rows. */
const cellsOf = (answer: Answer): Json[] =>
  listAt(objectOf(answer), 'rows').map((row) => valueAt(row, 'cells') ?? null)

void t.test(
  'root reads what a component has recorded, in the form it asks for',
  { skip },
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a', 'b')
    const inTheCloud = cloud.as('kubectl', { accept: tableAccept })
    const table = await inTheCloud.get(podsOfNode)
    const single = await inTheCloud.get(`${podsOfDefault}/a`)
    const whole = await cloud.as('kubectl').get(`${podsOfDefault}/a`)
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
    await goOffline(cloud, hub)

    const kubectl = hub.as('kubectl', { accept: tableAccept })
    const offline = await kubectl.get(allPods)
    t.equal(offline.status, 200)
    t.equal(textAt(objectOf(offline), 'kind'), 'Table')
    t.strictSame(cellsOf(offline), cellsOf(table))
    t.strictSame(
      valueAt(objectOf(offline), 'columnDefinitions'),
      valueAt(objectOf(table), 'columnDefinitions'),
    )
    t.equal(textAt(objectOf(offline), 'metadata', 'resourceVersion'), '', 'a part has no version')
    t.match(
      warningOf(offline),
      /; as components of this node have read it; the cluster may have more"$/,
    )
    t.match(offline.headers.age, /^[0-9]+$/)

    t.strictSame(cellsOf(await kubectl.get(`${podsOfDefault}/a`)), cellsOf(single))
    t.strictSame(objectOf(await hub.as('kubectl').get(`${podsOfDefault}/a`)), objectOf(whole))
    const items = objectOf(await hub.as('kubectl').get(`${podsOfDefault}?labelSelector=app%3Db`))
    t.strictSame(
      listAt(items, 'items').map((each) => textAt(each, 'metadata', 'name')),
      ['b'],
    )
  },
)

void t.test('only root is shown the records of others', { skip }, async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  await goOffline(cloud, hub)
  t.equal((await hub.as('kubectl').get(allPods)).status, 200)
  t.equal(
    (await hub.as('kubelet').get(allPods)).status,
    503,
    'a component gets only its own records',
  )
  t.equal((await hub.as('kubectl', { token: 'stolen' }).get(allPods)).status, 401)
  const [another] = await requestAs(65_534, [
    { url: `${hub.url}${allPods}`, headers: { 'User-Agent': 'kubectl/v1.35.0' } },
  ])
  t.equal(another?.status, 503, 'the node by its address, but not root')
})

void t.test('a pod that root has read by name is shown beside the others', { skip }, async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  t.equal((await hub.as('kubectl').get(`${podsOfDefault}/a`)).status, 200)
  await goOffline(cloud, hub)
  t.equal((await hub.as('kubectl', { accept: tableAccept }).get(`${podsOfDefault}/a`)).status, 200)
  t.equal((await hub.as('kubectl').get(`${podsOfDefault}/a`)).status, 200)
  for (const path of [allPods, podsOfDefault]) {
    const items = listAt(objectOf(await hub.as('kubectl').get(path)), 'items')
    t.strictSame(
      items.map((each) => textAt(each, 'metadata', 'name')),
      ['a', 'b'],
    )
  }
})

void t.test(
  'of several records the newest counts, and deleted objects are not shown',
  { skip },
  async (t) => {
    const cloud = await startCloud(t)
    for (const name of ['a', 'b']) {
      cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' } })
    }
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.as('flanneld').list(mapsOfDefault)
    await hub.as('kubelet', { encoding: 'protobuf' }).get(`${mapsOfDefault}/b`)
    cloud.touch(configMaps, 'a', 'default')
    cloud.sandbox.delete(configMaps, 'b', 'default')
    const newest = cloud.sandbox.get(configMaps, 'a', 'default')
    const { resourceVersion } = await hub
      .as('kubelet', { encoding: 'protobuf' })
      .list(mapsOfDefault)
    await goOffline(cloud, hub)
    const kubectl = hub.as('kubectl', { accept: tableAccept })
    const answer = await kubectl.get(mapsOfDefault)
    t.strictSame(
      listAt(objectOf(answer), 'rows').map((row) => [
        textAt(row, 'object', 'metadata', 'name'),
        textAt(row, 'object', 'metadata', 'resourceVersion'),
      ]),
      [['a', newest?.metadata.resourceVersion]],
    )
    t.equal(textAt(objectOf(answer), 'metadata', 'resourceVersion'), resourceVersion)
    t.notMatch(warningOf(answer), /may have more/, 'a whole list is known')
    t.equal((await kubectl.get(`${mapsOfDefault}/b`)).status, 404)
  },
)

for (const [form, accept] of [
  ['a Table', tableAccept],
  ['objects', 'application/json'],
] as const) {
  void t.test(`what kubectl has read as ${form} hides no newer object`, { skip }, async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const elsewhere = { nodeName: 'edge-2', containers: [{ name: 'main', image: 'main' }] }
    cloud.sandbox.create(pods, pod('b', { spec: elsewhere }))
    cloud.sandbox.create(configMaps, { metadata: { name: 'gone', namespace: 'default' } })
    const hub = await startOnlineHub(t, { upstreams: [cloud] })
    const kubectl = hub.as('kubectl', { accept })
    for (const path of [allPods, `${podsOfDefault}/a`, `${mapsOfDefault}/gone`])
      t.equal((await kubectl.get(path)).status, 200)
    cloud.sandbox.update(pods, { ...cloud.sandbox.get(pods, 'a', 'default'), status }, 'status')
    cloud.sandbox.delete(configMaps, 'gone', 'default')
    const kubelet = hub.as('kubelet', { encoding: 'protobuf' })
    await kubelet.list(podsOfNode)
    await kubelet.list(mapsOfDefault)
    cloud.sandbox.create(configMaps, { metadata: { name: 'later', namespace: 'default' } })
    t.equal((await kubectl.get(`${mapsOfDefault}/later`)).status, 200)
    await goOffline(cloud, hub)
    t.match((await kubectl.get(`${podsOfDefault}/a`)).body.toString(), /"Succeeded"/)
    const all = await kubectl.get(allPods)
    // A Table of all is given as it came where no component has read all.
    if (accept !== tableAccept) t.match(all.body.toString(), /"Succeeded"/)
    t.match(all.body.toString(), /"name":"b"/, 'no component reads pods of other nodes')
    t.notMatch(warningOf(all), /may have more/)
    t.equal((await kubectl.get(`${mapsOfDefault}/gone`)).status, 404)
    t.equal((await kubectl.get(`${mapsOfDefault}/later`)).status, 200, 'no list could have it')
  })
}

void t.test('an empty list is shown only where the cloud has shown one', { skip }, async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet', { encoding: 'protobuf' })
  await kubelet.list(podsOfNode)
  await kubelet.list(allServices)
  await goOffline(cloud, hub)
  const kubectl = hub.as('kubectl', { accept: tableAccept })
  t.equal((await kubectl.get('/api/v1/namespaces/other/pods')).status, 503)
  t.equal((await kubectl.get(`${podsOfDefault}/none`)).status, 503)
  const none = await kubectl.get('/api/v1/namespaces/other/services')
  t.strictSame([none.status, cellsOf(none)], [200, []])
  t.equal((await kubectl.get('/api/v1/namespaces/other/services/none')).status, 404)
  t.equal((await kubectl.get('/api/v1/configmaps')).status, 503, 'nothing was ever read')
})

void t.test('the list of one namespace says nothing of another', { skip }, async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(namespaces, { metadata: { name: 'other' } })
  for (const namespace of ['default', 'other']) {
    cloud.sandbox.create(configMaps, { metadata: { name: 'a', namespace } })
  }
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet', { encoding: 'protobuf' })
  const flanneld = hub.as('flanneld')
  const mapsOfOther = '/api/v1/namespaces/other/configmaps'
  await flanneld.list(mapsOfOther)
  await kubelet.get(`${mapsOfOther}/a`)
  cloud.sandbox.delete(configMaps, 'a', 'default')
  await flanneld.list(mapsOfDefault)
  await goOffline(cloud, hub)
  const kubectl = hub.as('kubectl', { accept: tableAccept })
  const all = await kubectl.get('/api/v1/configmaps')
  t.equal(cellsOf(all).length, 1)
  t.match(warningOf(all), /the cluster may have more/)
  t.equal((await kubectl.get(`${mapsOfOther}/a`)).status, 200)
  t.equal((await kubectl.get('/api/v1/namespaces/third/configmaps')).status, 503)
})

void t.test(
  'records of service accounts are only for the kubelet’s certificate',
  { skip },
  async (t) => {
    const cloud = await startCloud(t)
    cloud.sandbox.create(serviceAccounts, { metadata: { name: 'agent', namespace: 'default' } })
    cloud.sandbox.create(secrets, { metadata: { name: 's', namespace: 'default' }, type: 'Opaque' })
    const { body } = await cloud
      .as('tester')
      .send('/api/v1/namespaces/default/serviceaccounts/agent/token', {
        method: 'POST',
        body: { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', spec: {} },
      })
    const token = textAt(JSON.parse(body.toString()) as Json, 'status', 'token')
    const authority = await CertificateAuthority.create('cluster')
    const clientCa = join(rootFolder(t), 'client-ca.crt')
    writeFileSync(clientCa, authority.certificate)
    const certificate = await authority.issue({
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      usage: 'client',
    })
    const hub = await startTestHub(t, {
      upstreams: [cloud],
      flags: ['--cache-components=agent', `--client-ca=${clientCa}`],
    })
    await hub.as('agent', { token }).list('/api/v1/namespaces/default/secrets')
    await goOffline(cloud, hub)
    const bySocket = hub.as('kubectl', { accept: tableAccept })
    t.equal((await bySocket.get('/api/v1/secrets')).status, 503, 'a container may be root there')
    const kubectl = hub.securelyAs('kubectl', certificate, { accept: tableAccept })
    const answer = await kubectl.get('/api/v1/namespaces/default/secrets')
    t.strictSame(
      cellsOf(answer).map((cells) => listAt(cells).slice(0, 3)),
      [['s', 'Opaque', 0]],
    )
    t.match(warningOf(answer), /; as components of this node have read it"$/)
  },
)

void t.test(
  'a custom resource has the columns of its definition, where that was read',
  { skip },
  async (t) => {
    const cloud = await startCloud(t)
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const group = 'plant.example'
    const definition = {
      kind: 'CustomResourceDefinition',
      apiVersion: 'apiextensions.k8s.io/v1',
      metadata: { name: `pumps.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { kind: 'Pump', plural: 'pumps', singular: 'pump' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
            additionalPrinterColumns: [
              { name: 'Pressure', type: 'integer', jsonPath: '.spec.pressure' },
              {
                name: 'Ready',
                type: 'string',
                jsonPath: '.status.conditions[?(@.type=="Ready")].status',
                priority: 1,
              },
            ],
          },
        ],
      },
    }
    await cloud.as('tester').send(definitions, { method: 'POST', body: definition })
    const pumps = { group, version: 'v1', resource: 'pumps' }
    cloud.sandbox.create(pumps, {
      metadata: { name: 'p', namespace: 'default' },
      spec: { pressure: 7 },
      status: { conditions: [{ type: 'Wet' }, { type: 'Ready', status: 'True' }] },
    })
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.as('kubelet').list(`/apis/${group}/v1/pumps`)
    const kubectl = hub.as('kubectl', { accept: tableAccept })
    await goOffline(cloud, hub)
    const plain = await kubectl.get(`/apis/${group}/v1/pumps`)
    t.strictSame(
      cellsOf(plain).map((cells) => listAt(cells)[0]),
      ['p'],
    )
    await goOnline(cloud, hub)
    await hub.as('kubelet').list(definitions)
    await goOffline(cloud, hub)
    t.strictSame(cellsOf(await kubectl.get(`/apis/${group}/v1/pumps`)), [['p', 7, 'True']])
  },
)

void t.test('a status that the kubelet writes offline is shown', { skip }, async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const kubelet = hub.as('kubelet', { encoding: 'protobuf' })
  await kubelet.list('/api/v1/nodes')
  await goOffline(cloud, hub)
  const notReady = { status: { conditions: [{ type: 'Ready', status: 'False' }] } }
  await hub.as('kubelet', { encoding: 'protobuf' }).send('/api/v1/nodes/edge-1/status', {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/strategic-merge-patch+json' },
    body: Buffer.from(JSON.stringify(notReady)),
  })
  const answer = await hub.as('kubectl', { accept: tableAccept }).get('/api/v1/nodes/edge-1')
  t.equal(listAt(cellsOf(answer)[0])[1], 'NotReady')
})
