import t from 'tap'
import { at, objectOf, tableAccept, warningOf, type Answer, type Client } from '../kit/client.ts'
import { textAt } from '../../src/api/kube/json-at.ts'
import { pods, podsOfNode } from '../kit/cloud.ts'
import { onlineNode, goOffline, startCloud, startTestHub, type TestHub } from '../kit/hub.ts'

const podA = '/api/v1/namespaces/default/pods/a'

const definitions = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
}
const widgets = {
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Widget', plural: 'widgets' },
    scope: 'Namespaced',
    versions: [
      { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
    ],
  },
}

const metadata = (encoding: string): string =>
  `${encoding};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`

/** The forms in which programs ask. */
const representations: Readonly<Record<string, (hub: TestHub) => Client>> = {
  JSON: (hub) => hub.as('kubelet'),
  protobuf: (hub) => hub.as('kubelet', { encoding: 'protobuf' }),
  'protobuf or else JSON': (hub) =>
    hub.as('kubelet', { accept: 'application/vnd.kubernetes.protobuf,application/json' }),
  Table: (hub) => hub.as('kubectl', { accept: tableAccept }),
  metadata: (hub) => hub.as('kubelet', { accept: metadata('application/json') }),
  'metadata in protobuf': (hub) =>
    hub.as('kubelet', { accept: metadata('application/vnd.kubernetes.protobuf') }),
}

for (const [representation, as] of Object.entries(representations)) {
  void t.test(`the last answer is given again, byte for byte: ${representation}`, async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b')
    const client = as(hub)
    const paths = [podsOfNode, podA, '/apis/node.k8s.io/v1/runtimeclasses', '/api/v1', '/version']
    const online = await Promise.all(paths.map((path) => client.get(path)))
    await goOffline(cloud, hub)
    for (const [i, path] of paths.entries()) {
      // Documents have no metadata to ask for.
      if (online[i]?.status === 406) continue
      const offline = await client.get(path)
      t.equal(offline.status, 200, path)
      t.equal(offline.headers['content-type'], online[i]?.headers['content-type'], path)
      t.equal(offline.body.toString('latin1'), online[i]?.body.toString('latin1'), path)
    }
  })
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`an answer that was never requested is not made up: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a')
    await hub.as('kubelet').list(podsOfNode)
    await goOffline(cloud, hub)
    const kubelet = hub.as('kubelet', { encoding })
    const never = [
      '/api/v1/pods',
      '/api/v1/services',
      '/api/v1/nodes/edge-1',
      '/apis/storage.k8s.io/v1/csinodes/edge-1',
      '/api/v1/services?watch=true&resourceVersion=5',
      '/api/v1/services?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      '/apis',
    ]
    for (const path of never) {
      const answer = await kubelet.get(path)
      t.equal(answer.status, 503, path)
      t.notOk(answer.headers['retry-after'], 'with a Retry-After a client comes back for ever')
      const status = { kind: 'Status', status: 'Failure', reason: 'ServiceUnavailable', code: 503 }
      t.match(objectOf(answer), status)
    }
  })
}

void t.test('an empty list is recorded, and an object missing from a list is 404', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet')
  const empty = await kubelet.list('/apis/node.k8s.io/v1/runtimeclasses')
  await kubelet.list('/api/v1/pods')
  t.strictSame(empty.names, [])
  await goOffline(cloud, hub)
  const offline = await kubelet.list('/apis/node.k8s.io/v1/runtimeclasses')
  t.strictSame(offline.answer.body, empty.answer.body)
  t.not(offline.resourceVersion, '0')
  const absent = await kubelet.get('/api/v1/namespaces/default/pods/nowhere')
  t.match(objectOf(absent), { reason: 'NotFound', details: { name: 'nowhere', kind: 'pods' } })
  t.equal((await kubelet.get(podA)).status, 200, 'what a list held is there for a get')
})

void t.test('refusals are never recorded', async (t) => {
  const cloud = await startCloud(t, { anonymous: true })
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet')
  const before = await kubelet.list(podsOfNode)
  const failing = (status: number) =>
    cloud.sandbox.faults.fail(status, ({ path }) => path.startsWith('/api/v1/'))
  for (const status of [403, 404, 410, 429, 500, 503]) {
    using _failing = failing(status)
    t.equal((await kubelet.get(podsOfNode)).status, status, 'an answer is passed on')
    t.equal((await kubelet.get('/api/v1/services')).status, status)
  }
  {
    using _refusing = failing(401)
    const own = 'a 401 is to the credentials of the hub: the cache answers the node'
    t.equal((await kubelet.get(podsOfNode)).status, 200, own)
    t.equal((await kubelet.get('/api/v1/services')).status, 503)
  }
  await goOffline(cloud, hub)
  t.strictSame((await kubelet.list(podsOfNode)).answer.body, before.answer.body)
  t.equal((await kubelet.get('/api/v1/services')).status, 503)
})

void t.test("a 404 without an API server's marks is an answer too", async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet')
  await kubelet.list(podsOfNode)
  using _failing = cloud.sandbox.faults.failAsGateway(404, ({ path }) => path === '/api/v1/pods')
  t.equal((await kubelet.get(podsOfNode)).status, 404)
})

void t.test('the versions of lists are those the cloud issued', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  cloud.addPods('b')
  const event = await watch.next()
  const latest = at(event?.object, 'metadata', 'resourceVersion') as string
  await goOffline(cloud, hub)
  t.equal((await kubelet.list(podsOfNode)).resourceVersion, latest, 'an event moves it on')
  const ask = async (query: string) => kubelet.get(`${podsOfNode}&${query}`)
  t.equal((await ask(`resourceVersion=${resourceVersion}`)).status, 200)
  t.equal((await ask('resourceVersion=0')).status, 200)
  t.match(objectOf(await ask(`resourceVersion=${Number(latest) + 1}`)), {
    code: 504,
    reason: 'Timeout',
    details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
  })
  const older = `resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`
  t.match(objectOf(await ask(older)), { code: 410, reason: 'Expired' })
  t.match(objectOf(await ask('limit=1&continue=abc')), { code: 410, reason: 'Expired' })
})

void t.test(
  'a Table is given again to the request that it has answered, and to no other',
  async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b')
    const kubectl = hub.as('kubectl', { accept: tableAccept })
    const path = '/api/v1/namespaces/default/pods'
    const all = await kubectl.get(`${path}?limit=500`)
    for (const name of ['a', 'b']) t.equal((await kubectl.get(`${path}/${name}`)).status, 200)
    cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
    t.equal((await kubectl.get(`${path}/a`)).status, 404)
    cloud.addPods('c')
    const page = await kubectl.get(`${path}?limit=1`)
    const token = textAt(objectOf(page), 'metadata', 'continue')
    t.equal((await kubectl.get(`${path}?limit=1&continue=${token}`)).status, 200)
    t.equal((await kubectl.get(`${path}?labelSelector=app%3Db&limit=500`)).status, 200)
    await goOffline(cloud, hub)
    for (const limit of ['?limit=500', '?limit=100', '?resourceVersion=0', ''])
      t.equal((await kubectl.get(`${path}${limit}`)).body.toString(), all.body.toString(), limit)
    t.match(warningOf(await kubectl.get(path)), /the cloud has not confirmed this since \d/)
    t.equal(
      (await kubectl.get(`${path}?labelSelector=app%3D%3Db`)).status,
      200,
      'the same selector',
    )
    t.equal((await kubectl.get(`${path}/b`)).status, 200)
    for (const other of [
      `${path}/a`,
      `${path}/c`,
      `${path}?limit=1&continue=${token}`,
      `${path}?resourceVersion=1`,
      `${path}?labelSelector=app%3Dc`,
      '/api/v1/pods',
    ])
      t.equal((await kubectl.get(other)).status, 503, other)
  },
)

void t.test('a get of a version that has not come is refused', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list('/api/v1/pods')
  await goOffline(cloud, hub)
  const get = (version: string) => kubelet.get(`${podA}?resourceVersion=${version}`)
  t.equal((await get('0')).status, 200)
  t.equal((await get(resourceVersion)).status, 200, 'it had not changed up to there')
  t.match(objectOf(await get(`${Number(resourceVersion) + 1}`)), {
    code: 504,
    details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
  })
})

void t.test('F19: version, discovery and the metadata of CRDs are there offline', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  cloud.sandbox.create(definitions, widgets)
  const documents = [
    '/version',
    '/api',
    '/apis',
    '/api/v1',
    '/apis/apps/v1',
    '/apis/example.com/v1',
  ]
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const asked = [
    ...documents.map((path) => [hub.as('coredns'), path] as const),
    [hub.as('coredns', { accept: metadata('application/json') }), crds] as const,
  ]
  const online = await Promise.all(asked.map(([client, path]) => client.get(path)))
  await goOffline(cloud, hub)
  await hub.restart()
  for (const [i, [client, path]] of asked.entries()) {
    t.equal(online[i]?.status, 200, path)
    const offline = await client.withOptions({ url: hub.url }).get(path)
    t.equal(offline.status, 200, path)
    t.equal(offline.headers['content-type'], online[i]?.headers['content-type'], path)
    t.ok(offline.body.equals(online[i]?.body ?? Buffer.of()), path)
  }
})

void t.test('equivalent selectors are the same, however they are written', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b', 'c')
  const inTheCloud = await hub.as('kubelet').list('/api/v1/pods?labelSelector=app%20in%20(b,a)')
  await goOffline(cloud, hub)
  const proxy = hub.as('kube-proxy')
  const here = await proxy.list('/api/v1/pods?labelSelector=app+in+(a,+b)&limit=500&timeout=5s')
  t.strictSame(here.answer.body, inTheCloud.answer.body, 'also for another program of the node')
  t.equal((await proxy.get('/api/v1/pods?labelSelector=app%20in%20(a)')).status, 503)
})

void t.test('an invalid selector is refused offline as it is online', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const kubelet = hub.as('kubelet')
  const unreadable = ['labelSelector=a%20b', 'fieldSelector=spec.nodeName'].flatMap((selector) => [
    `/api/v1/pods?${selector}`,
    `/api/v1/pods?watch=true&${selector}`,
  ])
  const online = await Promise.all(unreadable.map((path) => kubelet.get(path)))
  await goOffline(cloud, hub)
  for (const [i, path] of unreadable.entries()) {
    t.equal(online[i]?.status, 400, path)
    const offline = await kubelet.get(path)
    t.strictSame(objectOf(offline), objectOf(online[i] as Answer), path)
  }
})

void t.test('callers with tokens and the node get offline what each was given', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a', 'b')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const [one, two] = ['one', 'two'].map((name) =>
    hub.as('kubelet', { token: cloud.sandbox.token(name) }),
  ) as [Client, Client]
  const stale = hub.as('kubelet', { token: cloud.sandbox.token('three') })
  const unknown = hub.as('kubelet', { token: cloud.sandbox.token('four') })
  await one.list('/api/v1/pods')
  await two.list('/api/v1/services')
  await stale.list('/api/v1/pods')
  await hub.as('kubelet').list(podsOfNode)
  await goOffline(cloud, hub)
  const status = async (client: Client, path: string) => (await client.get(path)).status
  t.equal(await status(one, '/api/v1/pods'), 200)
  t.equal(await status(two, '/api/v1/pods'), 503)
  t.equal(await status(hub.as('kubelet'), '/api/v1/pods'), 503)
  t.equal(await status(hub.as('kubelet'), podsOfNode), 200)
  t.equal(await status(one, podsOfNode), 200, 'it was given all pods')
  t.equal(await status(one, '/api/v1/services'), 503)
  t.equal(await status(hub.as('kubelet'), podA), 200)
  t.equal(await status(two, podA), 503)
  t.equal(await status(unknown, '/api/v1/services'), 401, 'no API server has accepted it')
})

void t.test('an expired token is refused, whatever it was given', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const claims = (exp: number) => Buffer.from(JSON.stringify({ exp })).toString('base64url')
  const bearer = (exp: number) => hub.as('kubelet', { token: `e30.${claims(exp)}.c2ln` })
  using _lenient = cloud.sandbox.faults.fail(403, ({ path }) => path.startsWith('/api/'))
  for (const exp of [1_000_000, 99_999_999_999])
    t.equal((await bearer(exp).get(podsOfNode)).status, 403, 'authenticated')
  await goOffline(cloud, hub)
  const ended = await bearer(1_000_000).get(podsOfNode)
  t.match(objectOf(ended), { code: 401, reason: 'Unauthorized' })
  t.equal((await bearer(99_999_999_999).get(podsOfNode)).status, 503)
})
