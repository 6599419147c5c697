import t from 'tap'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import {
  metadataAccepts,
  nameOf,
  type Client,
  type ClientOptions,
  type Watching,
} from '../kit/client.ts'
import { configMaps, type CloudServer } from '../kit/cloud.ts'
import { onlineNode, goOnline, goOffline } from '../kit/hub.ts'

const path = '/api/v1/namespaces/default/configmaps'

const isWatch = (request: SeenRequest): boolean =>
  request.path === path && request.query.get('watch') === 'true'

const add = (cloud: CloudServer, name: string): void => {
  cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' }, data: {} })
}

interface Server {
  as(component: string, options?: Partial<ClientOptions>): Client
}

/** Lists and watches metadata as client-go does. */
async function informer(server: Server, encoding: Encoding): Promise<Watching> {
  const { list, watch } = metadataAccepts(encoding)
  const { resourceVersion } = await server.as('kubelet', { accept: list }).list(path)
  return server
    .as('kubelet', { accept: watch })
    .watch(path, { resourceVersion, allowWatchBookmarks: 'true' })
}

const changes = async (watch: Watching | undefined, count: number): Promise<string[]> => {
  const seen: string[] = []
  while (seen.length < count) {
    const event = await watch?.nextChange()
    seen.push(event ? `${event.type} ${nameOf(event.object)}` : 'the end')
  }
  return seen
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`twenty watches of metadata are one upstream: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    const watches: Watching[] = []
    for (let i = 0; i < 20; i++) watches.push(await informer(hub, encoding))
    t.equal(cloud.sandbox.watchCount(isWatch), 1)
    const direct = await informer(cloud, encoding)
    add(cloud, 'a')
    const expected = await direct.next()
    for (const watch of watches) t.strictSame(await watch.next(), expected, 'byte by byte')
    t.match(expected?.object, { kind: 'PartialObjectMetadata', metadata: { name: 'a' } })
    t.notOk(expected?.object['data'])
  })

  void t.test(`a watch of metadata goes on after a cut: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    add(cloud, 'a')
    const watches = [await informer(hub, encoding), await informer(hub, encoding)]
    add(cloud, 'b')
    for (const watch of watches) t.strictSame(await changes(watch, 1), ['ADDED default/b'])
    for (const [gone, came] of [
      ['a', 'c'],
      ['b', 'd'],
    ] as const) {
      await goOffline(cloud, hub)
      cloud.sandbox.delete(configMaps, gone, 'default')
      add(cloud, came)
      await goOnline(cloud, hub)
      for (const watch of watches)
        t.strictSame(await changes(watch, 2), [`DELETED default/${gone}`, `ADDED default/${came}`])
    }
    t.equal(cloud.sandbox.watchCount(isWatch), 1)
  })
}

void t.test('whole objects are not given in place of metadata', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  add(cloud, 'a')
  const { resourceVersion } = await hub.as('kubelet').list(path)
  await hub.as('kubelet').watch(path, { resourceVersion })
  const { watch: accept } = metadataAccepts('json')
  const watch = await hub.as('kubelet', { accept }).watch(path, { resourceVersion: '0' })
  t.match(await watch.next(), { type: 'ADDED', object: { kind: 'PartialObjectMetadata' } })
  await cloud.sandbox.untilWatches(2, isWatch)
})
