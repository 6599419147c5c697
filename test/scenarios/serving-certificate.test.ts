import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import t from 'tap'
import type { HubStatus } from '../../src/hub/wiring/status/status.ts'
import { endpointSlices, services } from '../../src/api/kube/resources.ts'
import { at, Client, objectOf } from '../kit/client.ts'
import { pod, pods, service } from '../kit/cloud.ts'
import { startTestHub } from '../kit/hub.ts'
import { startJoinable } from '../kit/joinable.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const signer = '--hub-cert-signer=kubernetes.io/kubelet-serving'
const path = '/api/v1/namespaces/default/pods/a'

/** A connection of a client that trusts `ca` alone. */
async function trusting(t: Teardown, port: number, ca: string): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ca })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

void t.test('a hub gets a certificate that pods trust, and keeps it', async (t) => {
  const joinable = await startJoinable(t)
  const { cloud, authority } = joinable
  cloud.sandbox.create(pods, pod('a'))
  joinable.verdict = 'wait'
  const hub = await startTestHub(t, { upstreams: [cloud], flags: [signer] })
  const ca = authority.certificate
  const token = cloud.sandbox.token('operator')
  const inPod = () =>
    new Client({ url: hub.secureUrl, component: 'kubelet', token, tls: { ca } }).get(path)
  const own = hub.ca
  await trusting(t, hub.hub.proxySecurePort, own)
  await t.rejects(trusting(t, hub.hub.proxySecurePort, ca), 'before, it is of the hub itself')
  const early = await trusting(t, hub.hub.proxySecurePort, own)
  joinable.verdict = 'sign'
  await hub.logged('the hub has obtained a serving certificate')
  t.equal((await inPod()).status, 200)
  t.notOk(early.closed, 'connections under way go on')
  const signed = (await trusting(t, hub.hub.proxySecurePort, ca)).getPeerX509Certificate()
  t.equal(signed?.checkHost('kubernetes.default.svc'), 'kubernetes.default.svc')
  t.equal(signed?.checkHost(hub.config.nodeName), undefined, 'a name that nodes choose')
  const [authorities, first] = [hub.ca, own.split('-----END')[0] ?? '']
  t.ok(authorities.startsWith(first), 'clients are given the hub’s authority')
  t.ok(authorities.endsWith(ca), 'and the cluster’s')
  t.equal(readFileSync(join(hub.config.rootDir, 'pki', 'ca.crt'), 'utf8'), authorities)
  await cloud.unplug()
  await hub.restart()
  t.equal((await inPod()).status, 200, 'after a reboot offline, too')
  const { body } = await hub.ops.get('/readyz?verbose')
  t.match(String(body), /\[\+\]serving-certificate of the cluster until 20/)
})

void t.test(
  'pods that dial default/kubernetes are led to a certificate with its ClusterIP',
  async (t) => {
    const joinable = await startJoinable(t)
    const { cloud, authority } = joinable
    const { sandbox } = cloud
    sandbox.create(services, service('kubernetes', '10.96.0.1'))
    sandbox.create(endpointSlices, {
      metadata: { name: 'kubernetes', namespace: 'default' },
      addressType: 'IPv4',
      ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
      endpoints: [{ addresses: ['192.168.0.1'] }],
    })
    const hubAddress = { host: '127.0.0.1', port: 0 }
    joinable.verdict = 'wait'
    const hub = await startTestHub(t, {
      upstreams: [cloud],
      flags: [signer],
      config: { pods: { dummy: undefined, hubAddress, hostNetworkNode: true } },
    })
    await until('the request for a certificate', () => joinable.requesters.length === 1)
    const slice = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'
    const led = async (): Promise<unknown> =>
      at(objectOf(await hub.as('kube-proxy').get(slice)), 'endpoints')
    t.match(await led(), [{ addresses: ['192.168.0.1'] }])
    joinable.verdict = 'sign'
    await until('pods to be led to the hub', async () => {
      const [first] = (await led()) as readonly { addresses: readonly string[] }[]
      return first?.addresses[0] === '127.0.0.1'
    })
    const shown = await trusting(t, hub.hub.proxySecurePort, authority.certificate)
    t.equal(shown.getPeerX509Certificate()?.checkIP('10.96.0.1'), '10.96.0.1')
    t.equal(joinable.requesters.length, 1, 'none was requested without it')
  },
)

void t.test('the reason for a missing certificate is reported', async (t) => {
  const joinable = await startJoinable(t)
  joinable.verdict = 'deny'
  const { cloud } = joinable
  const hub = await startTestHub(t, { upstreams: [cloud], flags: [signer] })
  await hub.logged('the hub obtains no serving certificate')
  const { status, body } = await hub.ops.get('/readyz?verbose')
  t.equal(status, 200)
  t.match(
    String(body),
    /\[ \]serving-certificate of the hub's own authority, .* was denied: ByTest/,
  )
  const { certificates } = JSON.parse(
    String((await hub.ops.get('/inspect/status')).body),
  ) as HubStatus
  t.match(
    certificates.filter(({ use }) => use === 'serving'),
    [{ renewalFault: /was denied: ByTest/ }],
  )
})
