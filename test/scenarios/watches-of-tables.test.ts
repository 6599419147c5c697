import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import {
  at,
  objectOf,
  tableAccept,
  type Client,
  type ClientOptions,
  type Watching,
} from '../kit/client.ts'
import { configMaps, serviceAccounts, type CloudServer } from '../kit/cloud.ts'
import { onlineNode, goOffline, startCloud, startTestHub } from '../kit/hub.ts'
import { ScriptedServer } from '../kit/scripted-server.ts'

const path = '/api/v1/namespaces/default/configmaps'

const isWatch = (request: SeenRequest): boolean =>
  request.path === path && request.query.get('watch') === 'true'

const add = (cloud: CloudServer, name: string): void => {
  cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' }, data: {} })
}

interface Server {
  as(component: string, options?: Partial<ClientOptions>): Client
}

const kubectlOf = (server: Server, options: Partial<ClientOptions> = {}): Client =>
  server.as('kubectl', { accept: tableAccept, ...options })

/** Lists and watches as `kubectl get -w` does. */
async function kubectlGet(client: Client, includeObject = 'Metadata'): Promise<Watching> {
  const { resourceVersion } = await client.list(`${path}?includeObject=${includeObject}`)
  return client.watch(path, { resourceVersion, includeObject })
}

const rowsOf = (table: Json | undefined): string[] =>
  listAt(table, 'rows').map((row) => textAt(row, 'object', 'metadata', 'name'))

/** The next event, with the name in its row, and whether it has the columns. */
async function next(watch: Watching): Promise<string> {
  const event = await watch.next()
  if (!event) return 'the end'
  const has = Array.isArray(at(event.object, 'columnDefinitions')) ? 'with' : 'without'
  return `${event.type} ${rowsOf(event.object).join()} ${has} columns`
}

void t.test('watches of one Table are one upstream, each with columns first', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const direct = await kubectlGet(kubectlOf(cloud))
  const watches: Watching[] = []
  for (let i = 0; i < 5; i++) watches.push(await kubectlGet(kubectlOf(hub)))
  add(cloud, 'a')
  add(cloud, 'b')
  const expected = await direct.take(2)
  for (const watch of watches) t.strictSame(await watch.take(2), expected, 'byte by byte')
  const late = await kubectlGet(kubectlOf(hub))
  t.equal(cloud.sandbox.watchCount(isWatch), 2, 'with the direct one')
  add(cloud, 'c')
  t.equal(await next(late), 'ADDED c with columns')
  t.equal(await next(direct), 'ADDED c without columns')
  for (const watch of watches) t.equal(await next(watch), 'ADDED c without columns')
})

void t.test('a watch of a Table goes on after a cut', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const watches = [await kubectlGet(kubectlOf(hub)), await kubectlGet(kubectlOf(hub))]
  await goOffline(cloud, hub)
  cloud.sandbox.delete(configMaps, 'a', 'default')
  add(cloud, 'b')
  await cloud.plug()
  for (const watch of watches) {
    t.equal(await next(watch), 'DELETED a with columns')
    t.equal(await next(watch), 'ADDED b without columns')
  }
})

void t.test('a watch of a Table that begins offline goes on when the cloud is back', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  await kubectlOf(hub).list(path)
  await goOffline(cloud, hub)
  const watch = await kubectlGet(kubectlOf(hub))
  add(cloud, 'a')
  await cloud.plug()
  t.equal(await next(watch), 'ADDED a with columns')
})

void t.test('a watch of a Table that is cut before its first event has columns', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.sandbox.create(serviceAccounts, { metadata: { name: 'reader', namespace: 'default' } })
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  await kubectlGet(kubectlOf(hub, { token: await cloud.readerToken(3_600) }))
  // The API server has to take the other token first: its own watch passes through until an event.
  const watch = await kubectlGet(kubectlOf(hub, { token: await cloud.readerToken(7_200) }))
  t.equal(cloud.sandbox.watchCount(isWatch), 2)
  await goOffline(cloud, hub)
  add(cloud, 'a')
  await cloud.plug()
  const event = await watch.next()
  t.match(event, { type: 'ADDED', object: { kind: 'Table', rows: [{ cells: ['a'] }] } })
  t.ok(at(event?.object, 'columnDefinitions', 0))
})

void t.test('Tables with other objects in their rows are watched apart', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const watches: Watching[] = []
  for (const included of ['Metadata', 'Object', 'Metadata', 'Object'])
    watches.push(await kubectlGet(kubectlOf(hub), included))
  t.equal(cloud.sandbox.watchCount(isWatch), 2)
  add(cloud, 'a')
  const kinds = await Promise.all(
    watches.map(async (watch) => at((await watch.next())?.object, 'rows', 0, 'object', 'kind')),
  )
  t.strictSame(kinds, ['PartialObjectMetadata', 'ConfigMap', 'PartialObjectMetadata', 'ConfigMap'])
})

void t.test('watches of Tables without objects in their rows pass through', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const watches = [
    await kubectlGet(kubectlOf(hub), 'None'),
    await kubectlGet(kubectlOf(hub), 'None'),
  ]
  t.equal(cloud.sandbox.watchCount(isWatch), 2)
  add(cloud, 'a')
  for (const watch of watches)
    t.match(await watch.next(), { type: 'ADDED', object: { rows: [{ object: null }] } })
  await cloud.unplug()
  for (const watch of watches) await watch.end()
})

void t.test('the state of a Table is written anew, with the cells of now', async (t) => {
  const cloud = await startCloud(t)
  add(cloud, 'a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  await kubectlGet(kubectlOf(hub))
  const watch = await kubectlOf(hub).watch(path, { resourceVersion: '0' })
  t.equal(await next(watch), 'ADDED a with columns')
  t.equal(cloud.sandbox.watchCount(isWatch), 2)
})

const tableOf = (version: number, columns: readonly string[], name?: string): object => ({
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata: { resourceVersion: String(version) },
  columnDefinitions: columns.map((column) => ({ name: column })),
  rows: name
    ? [
        {
          cells: columns,
          object: {
            kind: 'PartialObjectMetadata',
            apiVersion: 'meta.k8s.io/v1',
            metadata: { name, namespace: 'default', resourceVersion: String(version) },
          },
        },
      ]
    : [],
})

void t.test(
  'rows of other columns than are stored end the watches, and are not stored',
  async (t) => {
    const server = await ScriptedServer.start(t)
    const hub = await startTestHub(t, { upstreams: [server] })
    await hub.online()
    const kubectl = kubectlOf(hub)
    const list = JSON.stringify(tableOf(10, ['Name', 'Age'], 'a'))
    server.answerWith(list)
    t.equal((await kubectl.get(path)).body.toString(), list)
    const event = (version: number, columns: readonly string[], name: string): string =>
      `${JSON.stringify({ type: 'ADDED', object: tableOf(version, columns, name) })}\n`
    const open: ServerResponse[] = []
    server.answer = (response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders()
      open.push(response)
      response.write(event(11, ['Name', 'Data', 'Age'], 'b'))
    }
    const watch = await kubectl.watch(path, { resourceVersion: '10' })
    t.equal(await next(watch), 'the end')
    const again = await kubectl.watch(path, { resourceVersion: '10' })
    t.equal(await next(again), 'ADDED b with columns')
    server.close()
    await hub.offline()
    t.strictSame(rowsOf(objectOf(await kubectl.get(path))), ['a'])
  },
)
