import t, { type Test } from 'tap'
import { statSync } from 'node:fs'
import { documentResource } from '../../src/hub/store/document.ts'
import type { Client } from '../kit/client.ts'
import { configMaps, pod, pods, podsOfNode, secrets, startCloud } from '../kit/cloud.ts'
import { startOnlineHub, goOffline } from '../kit/hub.ts'
import { logFilesIn, recordsIn } from '../kit/log-on-disk.ts'

const megabyte = 1 << 20
const maxBytes = 16 * megabyte
const namespace = 'default'
const pathOf = (name: string): string => `/api/v1/namespaces/default/configmaps/${name}`

/**
 * A cluster with some megabytes of ConfigMaps, and a hub with a small cache. The node has read what
 * it needs to boot, and a program with a token of its own has read its objects; both read them
 * again offline.
 */
async function start(t: Test) {
  const cloud = await startCloud(t, {
    authorizer: ({ user, resource }) => user.name !== 'stranger' || resource === undefined,
  })
  for (let at = 0; at < 60; at += 1) {
    cloud.sandbox.create(configMaps, {
      metadata: { name: `large-${at}`, namespace, labels: { n: String(at % 3) } },
      data: { of: String(at).repeat(60_000) },
    })
  }
  cloud.sandbox.create(pods, pod('of-the-node'))
  cloud.sandbox.create(secrets, { metadata: { name: 'of-the-node', namespace } })
  cloud.sandbox.create(configMaps, { metadata: { name: 'of-the-network', namespace } })
  const hub = await startOnlineHub(t, {
    upstreams: [cloud],
    // The documents that the hub itself reads would be counted, too.
    flags: ['--cache-components=*', '--cache-max-bytes=16Mi', '--boot-refresh-interval=0'],
  })
  const holder = (name: string): Client => hub.as(name, { token: cloud.sandbox.token(name) })
  const kubelet = hub.as('kubelet')
  const network = holder('network')
  const whole: readonly (readonly [Client, string])[] = [
    [kubelet, podsOfNode],
    [kubelet, '/api/v1/namespaces/default/secrets/of-the-node'],
    [kubelet, '/apis'],
    [kubelet, pathOf('of-the-network')],
    [network, pathOf('of-the-network')],
    [network, '/api/v1/namespaces/default/pods'],
    [network, '/openapi/v2'],
    [network, '/version'],
  ]
  for (const [client, path] of whole) t.equal((await client.get(path)).status, 200, path)
  return {
    hub,
    holder,
    /** The node and the other program get offline what they read. */
    othersAreWhole: async (): Promise<void> => {
      await goOffline(cloud, hub)
      for (const [client, path] of whole) t.equal((await client.get(path)).status, 200, path)
      t.equal(await hub.metric('nodehub_store_failures_total'), 0)
    },
    /** How many lists, or documents, were written. */
    written: (what: 'list' | 'document'): number =>
      recordsIn(hub.config.cachePath).filter(({ record }) =>
        what === 'list'
          ? record.kind === 'list'
          : record.kind === 'put' && record.scope.gvr.resource === documentResource.resource,
      ).length,
  }
}

/** All of them, a few at a time; resolves to their codes. */
async function getAll(client: Client, paths: readonly string[]): Promise<ReadonlySet<number>> {
  const codes = new Set<number>()
  for (let at = 0; at < paths.length; at += 8) {
    const answers = paths.slice(at, at + 8).map((path) => client.get(path))
    for (const { status } of await Promise.all(answers)) codes.add(status)
  }
  return codes
}

const numbered = (count: number, text: (at: number) => string): string[] =>
  Array.from({ length: count }, (_, at) => text(at))

void t.test('a caller without any right cannot fill the cache with documents', async (t) => {
  const { holder, othersAreWhole, written } = await start(t)
  const stranger = holder('stranger')
  t.equal((await stranger.get(pathOf('large-1'))).status, 403)
  const before = written('document')
  // Several that arrive at once may each be written.
  t.equal((await stranger.get('/openapi/v2')).status, 200)
  const hashes = numbered(100, (at) => `/openapi/v2?hash=${at}&timeout=${at}s`)
  t.strictSame(await getAll(stranger, hashes), new Set([200]))
  t.equal(written('document'), before + 1, 'whatever hash it writes')
  for (let at = 0; at < 50; at += 1) {
    const accept = `application/json;v=${at}, */*;q=0.${at}`
    t.equal((await stranger.withOptions({ accept }).get('/openapi/v2')).status, 200)
  }
  t.equal(written('document'), before + 1, 'whatever it accepts')
  await getAll(stranger, ['/%6fpenapi/v2', '/openapi/%76%32', '/api%73', '/openapi/v2/'])
  t.equal(written('document'), before + 1, 'and however it encodes the path')
  await othersAreWhole()
})

void t.test('a caller with one right to list cannot fill the cache', async (t) => {
  const { hub, holder, othersAreWhole, written } = await start(t)
  const reader = holder('reader')
  const list = '/api/v1/namespaces/default/configmaps'
  const before = written('list')
  const long = `${list}?labelSelector=n%20in%20(${numbered(8_000, (at) => `v${at}`).join()})`
  t.equal((await reader.get(long)).status, 200)
  t.equal(written('list'), before, 'a selector of 42 KB is passed on, and not recorded')
  const selectors = numbered(8, (at) => `${list}?labelSelector=n%20in%20(0,x${at})`)
  for (const each of selectors) t.equal((await reader.get(each)).status, 200)
  const objects = numbered(60, (at) => pathOf(`large-${at}`))
  t.strictSame(await getAll(reader, objects), new Set([200]))
  const names = numbered(80, (at) => `${list}?fieldSelector=metadata.name%3Dnot-there-${at}`)
  t.strictSame(await getAll(reader, names), new Set([200]))
  const table = 'application/json;as=Table;g=meta.k8s.io'
  for (let at = 0; at < 5; at += 1) {
    const accept = `${table};v=v${at + 2},${table};v=v1`
    t.equal((await reader.withOptions({ accept }).get(list)).status, 200)
  }
  t.ok((await hub.metric('nodehub_store_evicted_total{kind="old"}')) > 0)
  const sizes = logFilesIn(hub.config.cachePath).map((file) => statSync(file).size)
  t.ok(sizes.reduce((sum, size) => sum + size, 0) < maxBytes)
  await othersAreWhole()
})
