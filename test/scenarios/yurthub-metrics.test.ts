import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type PeerCertificate } from 'node:tls'
import { podsOfNode } from '../kit/cloud.ts'
import { refusingDisk } from '../kit/log-on-disk.ts'
import { onlineNode, goOffline, startCloud, startTestHub, type TestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'

const inFlight = (hub: TestHub, verb: string): Promise<number> =>
  hub.metric(
    `node_yurthub_in_flight_requests_collector{verb="${verb}",resource="pods",subresources="",client="kubelet"}`,
  )

void t.test('a watch is in flight, under yurthub’s names, until it ends', async (t) => {
  const { hub } = await onlineNode(t, 'a')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  t.equal(await inFlight(hub, 'watch'), 1)
  t.equal(await inFlight(hub, 'list'), 0)
  t.equal(await hub.metric('node_yurthub_in_flight_requests_total'), 1)
  watch.hangUp()
  await until('the watch to be over', async () => (await inFlight(hub, 'watch')) === 0)
  t.equal(await hub.metric('node_yurthub_in_flight_requests_total'), 0)
})

void t.test('bytes of the cloud’s answers are counted, those of the cache are not', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  const bytes = () =>
    hub.metric(
      'node_yurthub_proxy_traffic_collector{client="kubelet",verb="list",resource="pods",subresources=""}',
    )
  const { answer } = await hub.as('kubelet').list(podsOfNode)
  t.equal(await bytes(), answer.body.byteLength)
  await goOffline(cloud, hub)
  t.equal((await hub.as('kubelet').list(podsOfNode)).answer.status, 200)
  t.equal(await bytes(), answer.body.byteLength)
})

void t.test('an API server is reported healthy and connected, or neither', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  await hub.as('kubelet').get('/version')
  const { host } = new URL(cloud.url)
  const healthy = `node_yurthub_server_healthy_status{server="${cloud.url}"}`
  const open = `node_yurthub_closable_conns_collector{server="${host}"}`
  const ours = `nodehub_upstream_connections{upstream="${cloud.url}",protocol="http/1.1"}`
  t.equal(await hub.metric(healthy), 1)
  t.ok((await hub.metric(open)) >= 1)
  t.equal(await hub.metric(ours), await hub.metric(open))
  await goOffline(cloud, hub)
  t.equal(await hub.metric(healthy), 0)
  t.equal(await hub.metric(open), 0)
  t.equal(await hub.metric(ours), 0)
})

void t.test(
  'a collection that the store did not take counts until it is stored again',
  async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a')
    const kubelet = hub.as('kubelet')
    await kubelet.list(podsOfNode)
    using busy = refusingDisk()
    cloud.addPods('b')
    await kubelet.list(podsOfNode)
    t.equal(await hub.metric('node_yurthub_error_keys_count'), 1)
    t.equal(await hub.metric('node_yurthub_error_keys_persistency_status'), 0)
    busy[Symbol.dispose]()
    const isStored = async (): Promise<boolean> => {
      await kubelet.list(podsOfNode)
      return (await hub.metric('node_yurthub_error_keys_count')) === 0
    }
    t.ok(await until('a list that is stored', isStored))
    await hub.reaches('node_yurthub_error_keys_persistency_status', 1)
  },
)

void t.test('the hub’s certificates have metrics of their expiry', async (t) => {
  const cloud = await startCloud(t)
  const folder = 'test/fixtures/credentials'
  const certificate = join(folder, 'client.crt')
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    config: {
      credentials: { kind: 'files', certificate, key: join(folder, 'client.key') },
    },
  })
  const { validToDate } = new X509Certificate(readFileSync(certificate))
  t.equal(
    await hub.metric('nodehub_certificate_expiry_timestamp_seconds{certificate="client"}'),
    validToDate.getTime() / 1000,
  )
  const serving = await hub.metric(
    'nodehub_certificate_expiry_timestamp_seconds{certificate="serving"}',
  )
  const shown = await new Promise<PeerCertificate>((resolve, reject) => {
    const socket = connect(
      { host: '127.0.0.1', port: hub.hub.proxySecurePort, rejectUnauthorized: false },
      () => {
        resolve(socket.getPeerCertificate())
        socket.destroy()
      },
    ).on('error', reject)
  })
  t.equal(serving, Date.parse(shown.valid_to) / 1000)
})
