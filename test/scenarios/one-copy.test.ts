import t from 'tap'
import { at, nameOf, objectOf, type Client, type Watching } from '../kit/client.ts'
import { allServices, configMaps, service, services, type CloudServer } from '../kit/cloud.ts'
import {
  startOnlineHub,
  onlineNode,
  goOnline,
  goOffline,
  startCloud,
  type TestHub,
} from '../kit/hub.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'

const isWatch = ({ query, path }: SeenRequest): boolean =>
  path === allServices && query.get('watch') === 'true'

let clusterIP = 10
const add = (cloud: CloudServer, name: string, namespace = 'default'): void => {
  clusterIP += 1
  cloud.sandbox.create(services, service(name, `10.96.0.${clusterIP}`, namespace))
}

/** A client that has listed all services, and watches them from there on. */
async function informer(client: Client, query = ''): Promise<Watching> {
  const { resourceVersion } = await client.list(`${allServices}?resourceVersion=0${query}`)
  return client.watch(`${allServices}?allowWatchBookmarks=true${query}`, { resourceVersion })
}

const told = async (watch: Watching, count: number): Promise<string[]> =>
  (await watch.take(count)).map(({ type, object }) => `${type} ${nameOf(object)}`)

const account = (cloud: CloudServer, hub: TestHub, name: string): Client =>
  hub.as(name, { token: cloud.sandbox.token(name) })

const accounts = (cloud: CloudServer, hub: TestHub, ...names: readonly string[]): Client[] =>
  names.map((name) => account(cloud, hub, name))

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`one upstream watch serves all callers of a collection: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'a')
    const clients = [
      hub.as('kube-proxy', { encoding }),
      ...accounts(cloud, hub, 'coredns', 'operator').map((client) =>
        client.withOptions({ encoding }),
      ),
    ]
    const watches: Watching[] = []
    for (const client of clients) watches.push(await informer(client))
    await cloud.sandbox.untilWatches(1, isWatch)
    add(cloud, 'b')
    cloud.sandbox.delete(services, 'a', 'default')
    for (const watch of watches) {
      t.strictSame(await told(watch, 2), ['ADDED default/b', 'DELETED default/a'])
    }
    // With the hub's own watch of its node.
    await hub.reaches('nodehub_cacher_watchers', 4)
    t.equal(await hub.metric('nodehub_cacher_upstream_watches'), 2)
    t.ok((await hub.metric('nodehub_cacher_bytes')) > 0, 'of the two events')
  })
}

void t.test('no event is lost or repeated, however the upstream watch is cut', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const coredns = account(cloud, hub, 'coredns')
  const watches = [await informer(hub.as('kube-proxy')), await informer(coredns)]
  const cuts: (() => void | Promise<void>)[] = [
    () => cloud.sandbox.endWatches(isWatch),
    () => {
      using _reset = cloud.sandbox.faults.reset()
    },
    async () => {
      await goOffline(cloud, hub)
      await goOnline(cloud, hub)
    },
  ]
  const names: string[] = []
  for (const [turn, cut] of [...cuts, ...cuts].entries()) {
    names.push(`ADDED default/before-${turn}`, `ADDED default/while-${turn}`)
    add(cloud, `before-${turn}`)
    const cutting = cut()
    add(cloud, `while-${turn}`)
    await cutting
  }
  for (const watch of watches) t.strictSame(await told(watch, names.length), names)
  add(cloud, 'last')
  for (const watch of watches) t.strictSame(await told(watch, 1), ['ADDED default/last'])
  t.equal(cloud.sandbox.watchCount(isWatch), 1)
})

void t.test('a caller that may not read all is answered by the API server alone', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a')
  add(cloud, 'hidden', 'kube-system')
  cloud.sandbox.authorize(
    ({ user, resource, namespace }) =>
      user.name !== 'guest' || resource !== 'services' || namespace === 'default',
  )
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  await informer(hub.as('kube-proxy'))
  const guest = account(cloud, hub, 'guest')
  const version = cloud.sandbox.version
  for (const query of ['', '?resourceVersion=0', `?resourceVersion=${version}`]) {
    t.equal((await guest.get(`${allServices}${query}`)).status, 403)
  }
  // Nothing tells it more than to list.
  const watch = await guest.watch(allServices, { resourceVersion: version })
  t.match(await watch.next(), { type: 'ERROR', object: { code: 410 } })
  t.equal((await guest.watch(allServices, { resourceVersion: version })).status, 403)
  const own = await guest.list('/api/v1/namespaces/default/services?resourceVersion=0')
  t.strictSame(own.names, ['default/a'])
  await goOffline(cloud, hub)
  t.equal((await guest.get(`${allServices}?resourceVersion=0`)).status, 503)
  t.equal((await guest.get('/api/v1/namespaces/kube-system/services/hidden')).status, 503)
})

void t.test(
  'a caller that may list all but not watch it, or the reverse, is held to that',
  async (t) => {
    const cloud = await startCloud(t)
    add(cloud, 'a')
    const refused: Readonly<Record<string, string>> = { lister: 'watch', watcher: 'list' }
    cloud.sandbox.authorize(
      ({ user, resource, verb }) => resource !== 'services' || verb !== refused[user.name],
    )
    const hub = await startOnlineHub(t, { upstreams: [cloud] })
    await informer(hub.as('kube-proxy'))
    const lister = account(cloud, hub, 'lister')
    const watcher = account(cloud, hub, 'watcher')
    const { version } = cloud.sandbox
    const list = `${allServices}?resourceVersion=0`
    t.strictSame((await lister.list(list)).names, ['default/a'])
    t.equal((await lister.watch(allServices, { resourceVersion: version })).status, 403)
    t.equal((await watcher.get(list)).status, 403)
    t.equal((await watcher.watch(allServices, { resourceVersion: version })).status, 200)
  },
)

void t.test(
  'a caller that was allowed to read all gets it offline, after a restart as well',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'a')
    const token = cloud.sandbox.token('operator')
    const operator = (): Client => hub.as('operator', { token })
    const [proxied, own] = [await informer(hub.as('kube-proxy')), await informer(operator())]
    add(cloud, 'b')
    cloud.sandbox.delete(services, 'a', 'default')
    for (const watch of [proxied, own]) await watch.take(2)
    const { version } = cloud.sandbox
    await goOffline(cloud, hub)
    for (const restarts of [false, true]) {
      if (restarts) {
        await hub.restart()
        await hub.offline()
      }
      // Nothing is recorded for this program.
      const listed = await operator().list(allServices)
      t.strictSame([listed.names, listed.resourceVersion], [['default/b'], version])
      t.equal((await operator().get('/api/v1/namespaces/default/services/b')).status, 200)
      t.equal((await operator().get('/api/v1/namespaces/default/services/a')).status, 404)
      for (const [query, status] of [
        [`resourceVersion=${version}9`, 504],
        [`resourceVersion=${version}&resourceVersionMatch=NotOlderThan&limit=2`, 200],
        [`resourceVersion=${version}&limit=2`, 200],
        ['resourceVersion=1&limit=2', 410],
        ['resourceVersion=1&resourceVersionMatch=Exact', 410],
        ['resourceVersionMatch=Exact', 422],
        ['continue=token', 410],
      ] as const) {
        t.equal((await operator().get(`${allServices}?${query}`)).status, status, query)
      }
      const listing = await operator().watch(`${allServices}?allowWatchBookmarks=true`, {
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
      })
      t.strictSame(
        (await listing.take(2)).map(({ type }) => type),
        ['ADDED', 'BOOKMARK'],
      )
      const stranger = hub.as('operator', { token: cloud.sandbox.token('stranger') })
      t.equal((await stranger.get(allServices)).status, 401)
    }
    const watch = await operator().watch(allServices, { resourceVersion: version })
    await goOnline(cloud, hub)
    add(cloud, 'c')
    t.strictSame(await told(watch, 1), ['ADDED default/c'], 'and its watch outlasts the outage')
  },
)

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a consistent WatchList is one of the API server: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'a')
    add(cloud, 'b')
    await informer(hub.as('coredns', { encoding }))
    // Later than all that the hub has observed.
    cloud.addPods('unrelated')
    const watch = await hub
      .as('kube-proxy', { encoding })
      .watch(`${allServices}?allowWatchBookmarks=true`, {
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
      })
    const [, , end] = await watch.take(3)
    t.match(end, {
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: cloud.sandbox.version } },
    })
    add(cloud, 'c')
    cloud.sandbox.delete(services, 'a', 'default')
    t.strictSame(await told(watch, 2), ['ADDED default/c', 'DELETED default/a'])
  })
}

void t.test('a caller that impersonates another is answered by the API server', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  add(cloud, 'a')
  await informer(hub.as('coredns'))
  const admin = account(cloud, hub, 'admin')
  await admin.get('/version')
  const seen = cloud.sandbox.nextRequest(({ path }) => path === allServices)
  await admin.send(`${allServices}?resourceVersion=0`, { headers: { 'Impersonate-User': 'other' } })
  t.equal((await seen).headers['impersonate-user'], 'other')
})

void t.test(
  'F5: an object answered with 404 is not shown offline, though the watch missed its deletion',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'b')
    const kubeProxy = hub.as('kube-proxy')
    await informer(kubeProxy)
    using _silent = cloud.sandbox.faults.freeze(isWatch)
    cloud.sandbox.delete(services, 'b', 'default')
    const path = '/api/v1/namespaces/default/services/b'
    t.equal((await kubeProxy.get(path)).status, 404)
    await goOffline(cloud, hub)
    t.not((await kubeProxy.get(path)).status, 200)
  },
)

void t.test('the hub refuses the requests that an API server refuses', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  add(cloud, 'a')
  cloud.sandbox.create(configMaps, { metadata: { name: 'a', namespace: 'default' } })
  const operator = account(cloud, hub, 'operator')
  await operator.get('/version')
  for (const client of [hub.as('kube-proxy'), operator]) await informer(client)
  const maps = '/api/v1/namespaces/default/configmaps'
  await hub.as('kubelet').list(maps)
  const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
  const flawed = [
    'resourceVersion=abc',
    'resourceVersionMatch=Exact',
    'resourceVersion=0&resourceVersionMatch=Exact',
    'resourceVersion=1&resourceVersionMatch=Nonsense',
    'resourceVersion=1&resourceVersionMatch=Exact&continue=abc',
    'resourceVersion=1&continue=abc',
    'sendInitialEvents=true',
    'watch=true&sendInitialEvents=true',
    'watch=true&sendInitialEvents=true&resourceVersionMatch=Exact',
    'watch=true&resourceVersionMatch=NotOlderThan',
    'watch=true&resourceVersion=abc',
    'resourceVersion=0&limit=x',
    'resourceVersion=0&limit=1e1',
    'resourceVersion=0&timeoutSeconds=x',
    'resourceVersion=0&sendInitialEvents=true',
    'resourceVersion=0&sendInitialEvents=false',
    'watch=true&resourceVersion=0&timeoutSeconds=x',
    'watch=true&timeoutSeconds=1.5',
    'watch=true&resourceVersion=0&limit=x&timeoutSeconds=1',
    'watch=true&resourceVersion=0&continue=x&timeoutSeconds=1',
    `watch=true&resourceVersion=0&${initial}&continue=x&timeoutSeconds=1`,
  ]
  const asked = [
    ...flawed.map((query) => [operator, `${allServices}?${query}`] as const),
    ...flawed.map((query) => [hub.as('kubelet'), `${maps}?${query}`] as const),
  ]
  const answer = async (client: Client, path: string): Promise<unknown> => {
    const { status, body } = await client.get(path)
    return { status, body: body.toString() }
  }
  const said = await Promise.all(asked.map(([, path]) => answer(cloud.as('direct'), path)))
  const heard = (): Promise<unknown[]> =>
    Promise.all(asked.map(([client, path]) => answer(client, path)))
  t.match(
    said,
    said.map(() => ({ status: /[45]../ })),
  )
  t.strictSame(await heard(), said)
  await goOffline(cloud, hub)
  t.strictSame(await heard(), said, 'offline')
})

void t.test('one copy takes no client back behind its own answers', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  add(cloud, 'a')
  const kubeProxy = hub.as('kube-proxy')
  for (const client of [kubeProxy, hub.as('coredns')]) await informer(client)
  using _silent = cloud.sandbox.faults.freeze(isWatch)
  add(cloud, 'b')
  cloud.touch(services, 'a', 'default')
  const ofA = '/api/v1/namespaces/default/services/a'
  const versionOfA = async (): Promise<unknown> =>
    at(objectOf(await kubeProxy.get(ofA)), 'metadata', 'resourceVersion')
  const newest = cloud.sandbox.version
  t.equal(await versionOfA(), newest)
  const both = ['default/a', 'default/b']
  t.strictSame((await kubeProxy.list(allServices)).names, both)
  const state = async (): Promise<unknown> => {
    const watch = await kubeProxy.watch(allServices, { resourceVersion: '0' })
    return told(watch, 2)
  }
  const added = both.map((name) => `ADDED ${name}`)
  t.strictSame((await kubeProxy.list(`${allServices}?resourceVersion=0`)).names, both)
  await goOffline(cloud, hub)
  t.strictSame((await kubeProxy.list(`${allServices}?resourceVersion=0`)).names, both)
  t.strictSame(await state(), added)
  t.equal(await versionOfA(), newest)
  const part = await kubeProxy.list(`${allServices}?resourceVersion=0&labelSelector=!none`)
  t.strictSame(part.names, both, 'nor what was shown as a part of more')
})

void t.test('one copy takes no client back behind a selection that an object left', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a')
  const label = (app: string): void => {
    const stored = cloud.sandbox.get(services, 'a', 'default') as JsonObject & {
      metadata: object
    }
    cloud.sandbox.update(services, {
      ...stored,
      metadata: { ...stored.metadata, labels: { app } },
    })
  }
  label('x')
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  const kubeProxy = hub.as('kube-proxy')
  for (const client of accounts(cloud, hub, 'coredns', 'other')) await informer(client)
  const selected = async () => (await kubeProxy.list(`${allServices}?labelSelector=app%3Dx`)).names
  t.strictSame(await selected(), ['default/a'])
  using _silent = cloud.sandbox.faults.freeze(isWatch)
  label('y')
  t.strictSame(await selected(), [])
  await goOffline(cloud, hub)
  t.equal((await kubeProxy.get('/api/v1/namespaces/default/services/a')).status, 503)
})

const ofApp = 'labelSelector=app'
const isRoot = process.getuid?.() === 0

for (const { what, component = 'kube-proxy', skip = false } of [
  { what: 'though a selection lacks the object' },
  {
    what: 'for root at the node, who is shown what others have read',
    component: 'kubectl',
    skip: isRoot ? false : 'only root is shown it',
  },
]) {
  void t.test(`offline the newest state is shown: ${what}`, { skip }, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'a')
    const ofA = '/api/v1/namespaces/default/services/a'
    const reader = hub.as(component)
    t.equal((await reader.get(ofA)).status, 200)
    const [watch] = await Promise.all(
      accounts(cloud, hub, 'coredns', 'other').map((client) => informer(client)),
    )
    cloud.touch(services, 'a', 'default')
    const { version } = cloud.sandbox
    t.match(await watch?.next(), { type: 'MODIFIED' })
    cloud.sandbox.create(configMaps, { metadata: { name: 'later', namespace: 'default' } })
    t.strictSame((await reader.list(`${allServices}?${ofApp}`)).names, [])
    await goOffline(cloud, hub)
    const answer = await reader.get(ofA)
    t.equal(at(objectOf(answer), 'metadata', 'resourceVersion'), version)
  })
}

void t.test(
  'a caller has offline what an API server has given it, until it is refused',
  async (t) => {
    const cloud = await startCloud(t)
    add(cloud, 'a')
    const hub = await startOnlineHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
    const as = (name: string): (() => Client) => {
      const token = cloud.sandbox.token(name)
      return () => hub.as(name, { token })
    }
    const [robot, others] = [as('robot'), as('other')]
    const one = '/api/v1/namespaces/default/services/a'
    for (const client of [robot, others]) await client().get('/version')
    const offline = async (): Promise<number[]> => {
      await goOffline(cloud, hub)
      const of = (client: Client) => [client.get(allServices), client.get(one)]
      const answers = await Promise.all([...of(robot()), ...of(others())])
      await goOnline(cloud, hub)
      return answers.map(({ status }) => status)
    }
    await robot().list(allServices)
    t.strictSame(await offline(), [200, 200, 503, 503])
    t.equal((await others().get(one)).status, 200)
    t.strictSame(await offline(), [200, 200, 503, 200])
    await others().list(allServices)
    t.strictSame(await offline(), [200, 200, 200, 200])
    cloud.sandbox.authorize(
      ({ user, resource }) => user.name !== 'other' || resource !== 'services',
    )
    for (const path of [allServices, one]) t.equal((await others().get(path)).status, 403)
    t.strictSame(await offline(), [200, 200, 503, 503])
    await hub.restart()
    await hub.online()
    t.strictSame(await offline(), [200, 200, 503, 503], 'nor after a restart')
  },
)

void t.test(
  'a watch that another’s upstream watch serves is allowed by the API server',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'a')
    const other = account(cloud, hub, 'other')
    await informer(hub.as('kube-proxy'))
    const allowed = await informer(other)
    await cloud.sandbox.untilWatches(1, isWatch)
    allowed.hangUp()
    const { version } = cloud.sandbox
    cloud.sandbox.authorize(
      ({ user, resource, verb }) =>
        user.name !== 'other' || resource !== 'services' || verb !== 'watch',
    )
    t.equal((await other.watch(allServices, { resourceVersion: version })).status, 403)
    const initial = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
    t.equal((await other.watch(`${allServices}?allowWatchBookmarks=true`, initial)).status, 403)
  },
)

void t.test('what was given to one caller is no answer to another, nor a part of it', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(configMaps, { metadata: { name: 'a', namespace: 'default' } })
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
  const robot = account(cloud, hub, 'robot')
  const other = account(cloud, hub, 'other')
  await other.get('/version')
  const all = '/api/v1/configmaps'
  const { resourceVersion } = await robot.list(all)
  const watch = await other.watch(all, { resourceVersion })
  t.match(await watch.next(), { type: 'ERROR', object: { code: 410 } }, 'it has to list')
  const ofDefault = '/api/v1/namespaces/default/configmaps'
  const reads = [
    all,
    ofDefault,
    `${ofDefault}/a`,
    `${all}?labelSelector=%21app`,
    `${ofDefault}?fieldSelector=metadata.name%3Da`,
    `${all}?resourceVersion=0`,
  ]
  await goOffline(cloud, hub)
  for (const path of reads) {
    t.equal((await robot.get(path)).status, 200, path)
    t.equal((await other.get(path)).status, 503, path)
  }
  t.equal((await other.watch(all, { resourceVersion })).status, 503)
  const withState = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
  t.equal((await other.watch(`${all}?allowWatchBookmarks=true`, withState)).status, 503)
})

void t.test('the kubelet and a caller that read one object share one copy of it', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(configMaps, { metadata: { name: 'a', namespace: 'default' } })
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
  const robot = account(cloud, hub, 'robot')
  const path = '/api/v1/namespaces/default/configmaps/a'
  const kubelet = hub.as('kubelet')
  for (const client of [kubelet, robot]) t.equal((await client.get(path)).status, 200)
  cloud.touch(configMaps, 'a', 'default')
  const { version } = cloud.sandbox
  await robot.get(path)
  await goOffline(cloud, hub)
  const answer = objectOf(await kubelet.get(path))
  t.equal(at(answer, 'metadata', 'resourceVersion'), version, 'in the newest state of both')
})

void t.test('what a caller has written is no right to read it', async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.authorize(({ user, verb }) => user.name !== 'writer' || verb === 'create')
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
  const writer = account(cloud, hub, 'writer')
  const reader = account(cloud, hub, 'reader')
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
  const metadata = { name: 'leader', namespace: 'default' }
  const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata }
  t.equal((await writer.send(leases, { method: 'POST', body })).status, 201)
  t.equal((await reader.get(`${leases}/leader`)).status, 200)
  await goOffline(cloud, hub)
  t.equal((await reader.get(`${leases}/leader`)).status, 200)
  t.equal((await writer.get(`${leases}/leader`)).status, 503)
})
