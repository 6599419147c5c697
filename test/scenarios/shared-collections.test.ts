import t from 'tap'
import { nameOf, type Client, type Watching } from '../kit/client.ts'
import { allServices, service, services, type CloudServer } from '../kit/cloud.ts'
import { startCloud, startTestHub, type TestHub } from '../kit/hub.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'

const isWatch = ({ query, path }: SeenRequest): boolean =>
  path === allServices && query.get('watch') === 'true'

/** Of the hub itself, in its own name. */
const isOwn = (request: SeenRequest): boolean =>
  String(request.headers['user-agent']).startsWith('nodehub/')

const isOwnWatch = (request: SeenRequest): boolean => isWatch(request) && isOwn(request)

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

const accounts = (cloud: CloudServer, hub: TestHub, ...names: readonly string[]): Client[] =>
  names.map((name) => hub.as(name, { token: cloud.sandbox.token(name) }))

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`one watch of an API server serves all who may read all: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    add(cloud, 'a')
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const clients = [
      hub.as('kube-proxy', { encoding }),
      ...accounts(cloud, hub, 'coredns', 'operator').map((client) => client.but({ encoding })),
    ]
    const watches: Watching[] = []
    for (const client of clients) watches.push(await informer(client))
    t.equal(cloud.sandbox.watchCount(isWatch), 1)
    t.equal(cloud.sandbox.watchCount(isOwnWatch), 1)
    add(cloud, 'b')
    cloud.sandbox.delete(services, 'a', 'default')
    for (const watch of watches) {
      t.strictSame(await told(watch, 2), ['ADDED default/b', 'DELETED default/a'])
    }
    t.equal(await hub.metric('nodehub_shared_readers'), 3)
    t.equal(await hub.metric('nodehub_shared_watches'), 1)
  })
}
