import t from 'tap'
import { randomBytes } from 'node:crypto'
import { constants, createGzip, gunzipSync, gzipSync } from 'node:zlib'
import type { ServerResponse } from 'node:http'
import { lastingHeaders, type Answer, type Client } from '../kit/client.ts'
import { allServices, configMaps, pod, pods, podsOfNode, service, services } from '../kit/cloud.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { onlineNode, goOffline, startCloud, startTestHub, type CloudServer } from '../kit/hub.ts'
import { reachable, reachableHost } from '../kit/reachable.ts'
import { ScriptedServer } from '../kit/scripted-server.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const big = '/api/v1/namespaces/default/configmaps/big'

/** Objects that API servers compress: alone, and as a list. */
async function cloudWithMuch(t: Teardown): Promise<CloudServer> {
  const cloud = await startCloud(t)
  const much = Array.from({ length: 40_000 }, (_, i) => i.toString(36)).join(' ')
  const annotations = { 'test.example/much': much }
  for (const name of ['a', 'b', 'c']) {
    cloud.sandbox.create(pods, {
      ...pod(name),
      metadata: { name, namespace: 'default', annotations },
    })
  }
  cloud.sandbox.create(configMaps, {
    metadata: { name: 'big', namespace: 'default' },
    data: { much },
  })
  const kubernetes = service('kubernetes', '10.96.0.1')
  const metadata = { name: 'kubernetes', namespace: 'default', annotations }
  cloud.sandbox.create(services, { ...kubernetes, metadata })
  return cloud
}

const unfiltered = '--disabled-resource-filters=inclusterconfig,serviceenvupdater'

const gzipped = (client: Client, path: string): Promise<Answer> =>
  client.send(path, { headers: { 'Accept-Encoding': 'gzip' } })

/** The hub reads the Service kubernetes, to know the cluster. */
const isOwn = (headers: SeenRequest['headers']): boolean =>
  String(headers['user-agent']).startsWith('nodehub/')

const acceptEncodings = (cloud: CloudServer, path: string): unknown[] =>
  cloud.sandbox.requests
    .filter(({ url, headers }) => url.startsWith(path) && !isOwn(headers))
    .map(({ headers }) => headers['accept-encoding'])

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`recorded answers come compressed, and go plain: ${encoding}`, async (t) => {
    const cloud = await cloudWithMuch(t)
    const hub = await startTestHub(t, {
      upstreams: [cloud],
      flags: [unfiltered],
    })
    const kubelet = hub.as('flanneld', { encoding })
    const plain = new Map<string, Buffer>()
    for (const path of [podsOfNode, big]) {
      const direct = await gzipped(cloud.as('flanneld', { encoding }), path)
      const through = await gzipped(kubelet, path)
      t.equal(direct.headers['content-encoding'], 'gzip', path)
      t.strictSame(acceptEncodings(cloud, path), ['gzip', 'gzip'])
      t.strictSame(
        [through.headers['content-encoding'], through.headers.vary],
        [undefined, 'Accept-Encoding'],
      )
      const body = gunzipSync(direct.body)
      t.ok(through.body.equals(body), 'in the very bytes')
      plain.set(path, body)
    }
    t.equal(await hub.metric('nodehub_recorded_total{kind="list"}'), 1)
    t.equal(await hub.metric('nodehub_recorded_total{kind="object"}'), 1)
    const inflated = [...plain.values()].reduce((sum, { length }) => sum + length, 0)
    t.equal(await hub.metric('nodehub_upstream_inflated_bytes_total'), inflated)
    await goOffline(cloud, hub)
    for (const [path, body] of plain) {
      const offline = await gzipped(kubelet, path)
      t.equal(offline.headers['content-encoding'], undefined)
      t.ok(offline.body.equals(body), `${path} from the cache`)
    }
  })

  void t.test(
    `an answer that a filter may change comes compressed and goes plain: ${encoding}`,
    async (t) => {
      const cloud = await cloudWithMuch(t)
      const hub = await startTestHub(t, { upstreams: [cloud], ...(await reachable(t)) })
      const kubelet = hub.as('kubelet', { encoding })
      const kubernetes = '/api/v1/namespaces/default/services/kubernetes'
      for (const path of [allServices, kubernetes]) {
        const { headers, body } = await gzipped(kubelet, path)
        t.strictSame([headers['content-encoding'], headers.vary], [undefined, 'Accept-Encoding'])
        const length = headers['content-length']
        t.ok(length === undefined || Number(length) === body.length)
        t.ok(body.includes(reachableHost), path)
        t.notOk(body.includes('10.96.0.1'), path)
        t.strictSame(acceptEncodings(cloud, path), ['gzip'])
      }
    },
  )

  void t.test(`a client without Accept-Encoding gets plain answers: ${encoding}`, async (t) => {
    const cloud = await cloudWithMuch(t)
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const direct = await cloud.as('kubelet', { encoding }).get(podsOfNode)
    const through = await hub.as('kubelet', { encoding }).get(podsOfNode)
    t.strictSame(lastingHeaders(through), lastingHeaders(direct))
    t.ok(through.body.equals(direct.body))
    t.strictSame(acceptEncodings(cloud, podsOfNode), [undefined, undefined])
  })

  void t.test(
    `with --upstream-compression lists come compressed, and go as requested: ${encoding}`,
    async (t) => {
      const cloud = await cloudWithMuch(t)
      const hub = await startTestHub(t, {
        upstreams: [cloud],
        flags: ['--upstream-compression', unfiltered],
      })
      const direct = await cloud.as('flanneld', { encoding }).get(podsOfNode)
      for (const component of ['flanneld', 'prometheus']) {
        const plain = await hub.as(component, { encoding }).get(podsOfNode)
        t.ok(plain.body.equals(direct.body), component)
        t.equal(plain.headers['content-encoding'], undefined)
        const { headers, body } = await gzipped(hub.as(component, { encoding }), podsOfNode)
        const isPassed = component === 'prometheus'
        t.equal(headers['content-encoding'], isPassed ? 'gzip' : undefined)
        t.ok((isPassed ? gunzipSync(body) : body).equals(direct.body))
      }
      await hub.as('flanneld', { encoding }).get(big)
      t.strictSame(acceptEncodings(cloud, podsOfNode), [undefined, 'gzip', 'gzip', 'gzip', 'gzip'])
      t.strictSame(acceptEncodings(cloud, big), [undefined], 'lists and watches only')
      const [packed, inflated] = await Promise.all([
        hub.metric('nodehub_upstream_compressed_bytes_total'),
        hub.metric('nodehub_upstream_inflated_bytes_total'),
      ])
      t.equal(inflated, 3 * direct.body.length, 'what passes unread is not inflated')
      t.ok(packed > 0 && packed < inflated)
    },
  )
}

void t.test('only codings that the hub reads are requested for recorded answers', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const headers = { 'Accept-Encoding': 'br, gzip;q=0.5, zstd' }
  await hub.as('kubelet').send(podsOfNode, { headers })
  await hub.as('prometheus').send(podsOfNode, { headers })
  t.strictSame(acceptEncodings(cloud, podsOfNode), ['gzip;q=0.5', 'br, gzip;q=0.5, zstd'])
})

const kept = JSON.stringify({
  kind: 'PodList',
  apiVersion: 'v1',
  metadata: { resourceVersion: '10' },
  items: [{ metadata: { name: 'a', namespace: 'default', resourceVersion: '10' } }],
})
const packedFields = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }

/** The ways in which a compressed list comes to nothing. */
const corrupt: Readonly<Record<string, (response: ServerResponse, packed: Buffer) => void>> = {
  'its connection breaks off': (response, packed) => {
    response.writeHead(200, packedFields)
    response.write(packed.subarray(0, -1), () => response.destroy())
  },
  'it is shorter than it should be': (response, packed) =>
    void response.writeHead(200, packedFields).end(packed.subarray(0, -1)),
  'its checksum is wrong': (response, packed) =>
    void response
      .writeHead(200, packedFields)
      .end(Buffer.concat([packed.subarray(0, -8), Buffer.alloc(4), packed.subarray(-4)])),
  'more follows it': (response, packed) =>
    void response.writeHead(200, packedFields).end(Buffer.concat([packed, Buffer.from('more')])),
  'it is not compressed': (response) => void response.writeHead(200, packedFields).end(kept),
}

for (const [what, answer] of Object.entries(corrupt)) {
  void t.test(`a compressed list is not kept, nor taken for whole, where ${what}`, async (t) => {
    for (const [flags, headers] of [
      [[], { 'Accept-Encoding': 'gzip' }],
      [['--upstream-compression'], {}],
    ] as const) {
      const teller = await ScriptedServer.start(t)
      const hub = await startTestHub(t, { upstreams: [teller], flags })
      teller.answerWith(kept)
      await hub.as('kubelet').get('/api/v1/pods')
      const long = kept.replaceAll('"10"', '"20"').replace('"name":"a"', '"name":"b"')
      const padded = long.replace('"kind"', `${' '.repeat(300_000)}"kind"`)
      for (const list of [long, padded]) {
        teller.answer = (response) => answer(response, gzipSync(list))
        const body = await hub
          .as('kubelet')
          .send('/api/v1/pods', { headers })
          .then(
            (answer) => answer.body.toString(),
            () => undefined,
          )
        // Where nothing of it has been passed on, the one before it or a refusal is an answer, too.
        t.notOk(body?.includes('"name":"b"'), body ?? 'a break')
        t.equal(teller.lastHeaders['accept-encoding'], 'gzip')
      }
      t.equal(await hub.metric('nodehub_recorded_total{kind="list"}'), 1)
    }
  })
}

void t.test('an answer that is too long to record passes whole as it came', async (t) => {
  const teller = await ScriptedServer.start(t)
  const hub = await startTestHub(t, { upstreams: [teller], flags: [unfiltered] })
  const packed = gzipSync(randomBytes(17 * 1024 * 1024), { level: 0 })
  const fields = { ...packedFields, 'Content-Length': packed.byteLength }
  teller.answer = (response) => response.writeHead(200, fields).end(packed)
  const answer = await gzipped(hub.as('flanneld'), '/api/v1/namespaces/default/pods/a')
  t.ok(answer.body.equals(packed))
})

void t.test('an object that inflates beyond all measure passes unrecorded', async (t) => {
  const teller = await ScriptedServer.start(t)
  const hub = await startTestHub(t, { upstreams: [teller], flags: [unfiltered] })
  const bomb = gzipSync(`{"kind":"Pod","data":"${'x'.repeat(17 * 1024 * 1024)}"}`)
  teller.answer = (response) => response.writeHead(200, packedFields).end(bomb)
  const answer = await gzipped(hub.as('flanneld'), '/api/v1/namespaces/default/pods/a')
  t.ok(answer.body.equals(gunzipSync(bomb)))
  t.equal(await hub.metric('nodehub_recorded_total{kind="object"}'), 0)
})

const event = (name: string, version: number): string =>
  `${JSON.stringify({
    type: 'ADDED',
    object: {
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { name, namespace: 'default', resourceVersion: String(version) },
    },
  })}\n`

for (const component of ['kubelet', 'prometheus']) {
  void t.test(`events of a compressed watch are there at once: ${component}`, async (t) => {
    const teller = await ScriptedServer.start(t)
    const hub = await startTestHub(t, {
      upstreams: [teller],
      flags: ['--upstream-compression', unfiltered],
    })
    teller.answerWith(kept)
    await hub.as(component).get('/api/v1/pods')
    const gzip = createGzip()
    const say = (text: string): void => {
      gzip.write(text)
      gzip.flush(constants.Z_SYNC_FLUSH)
    }
    teller.answer = (response) => {
      response.writeHead(200, packedFields).flushHeaders()
      gzip.on('data', (chunk) => response.write(chunk)).on('end', () => response.end())
    }
    const watch = await hub.as(component).watch('/api/v1/pods', { resourceVersion: '10' })
    t.equal(watch.answer.headers['content-encoding'], undefined)
    t.equal(teller.lastHeaders['accept-encoding'], 'gzip')
    for (let version = 11; version < 14; version++) {
      say(event(`p${version}`, version))
      t.equal((await watch.next())?.frame.toString(), event(`p${version}`, version))
    }
    t.equal(
      await hub.metric('nodehub_recorded_total{kind="watch"}'),
      component === 'kubelet' ? 3 : 0,
    )
    watch.hangUp()
  })
}
