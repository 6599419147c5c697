import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { hashOfPublicKey } from '../../src/config/bootstrap.ts'
import { until } from '../kit/until.ts'
import { link } from '../kit/wire/link.ts'
import { noBareNode, openBareNode } from './bare-node.ts'
import { makeHostNetworkPool } from './host-network-pool.ts'
import { addToken, joinFlags, startJoinablePlane } from './joinable-plane.ts'
import { busyboxPod } from './pod.ts'
import { leaseRenewed, nodeReady, podRunning } from './seen.ts'

t.setTimeout(240_000)

const name = 'edge-1'
const pair = '/var/lib/kubelet/pki/kubelet-client-current.pem'

void t.test(
  'a bare node joins a real cluster with one command and a token',
  { skip: noBareNode(), timeout: 240_000 },
  async (t) => {
    // Signed five minutes back: 70 to 90 % of a certificate's life have passed at once, or
    // within 78 seconds.
    const plane = await startJoinablePlane(t, '--cluster-signing-duration=2m')
    const { admin } = plane
    await makeHostNetworkPool(plane, 'kiosks')
    const way = await link(t, Number(new URL(plane.url).port))
    const node = await openBareNode(t, plane, { name, port: way.port })
    const ca = readFileSync(plane.pki.ca.certificate, 'utf8')
    const join = (by: Parameters<typeof joinFlags>[1] = {}) =>
      node.run(
        'join',
        '--nodepool-name=kiosks',
        `--server-addr=https://127.0.0.1:${way.port}`,
        ...joinFlags(plane, by),
        '--image=nodehub:test',
      )
    const before = node.network.written()

    await t.test('a join with another CA’s hash fails and writes nothing', async (t) => {
      const { certificate } = await CertificateAuthority.create('other')
      const { code, err } = await join({ hash: hashOfPublicKey(certificate) })
      t.equal(code, 1)
      t.match(err, hashOfPublicKey(ca))
      t.match(err, 'Nothing was changed')
      t.strictSame(node.network.written(), before)
    })

    await t.test('a join with a deleted token fails', async (t) => {
      const token = 'ghijkl.0123456789abcdef'
      await addToken(plane, token)
      await admin.send('DELETE', '/api/v1/namespaces/kube-system/secrets/bootstrap-token-ghijkl')
      const { code, err } = await until('the token to be forgotten', async () => {
        const ended = await join({ token })
        return /401|not signed/.test(ended.err) && ended
      })
      t.equal(code, 1)
      t.match(err, 'Nothing was changed')
      t.notMatch(err, '0123456789abcdef', 'the secret is not printed')
      t.strictSame(node.network.written(), before)
    })

    const { code, out, err } = await join()
    t.equal(code, 0, err)
    t.match(out, 'the node edge-1 has joined the cluster')
    let hub = await node.startHub()
    await node.startKubelet()

    await t.test('its kubelet is Ready through the hub', async (t) => {
      await nodeReady(admin, name)
      const metrics = await node.network.fetch(`${node.opsUrl}/metrics`)
      t.match(metrics, /nodehub_requests_total\{[^}]*component="kubelet"/)
      const [made] = (await admin.get('/api/v1/nodes')).json().items ?? []
      t.match(made, { metadata: { name, labels: { 'apps.openyurt.io/nodepool': 'kiosks' } } })
    })

    await t.test('a pod runs on its network', async (t) => {
      const pod = busyboxPod('host', { nodeName: name }) as { spec: object }
      const spec = { ...pod.spec, hostNetwork: true }
      await admin.post('/api/v1/namespaces/default/pods', { ...pod, spec })
      const { status } = await podRunning(admin, 'host')
      t.equal(status?.podIP, node.network.address)
    })

    await t.test(
      'its certificate is renewed through the hub, with an outage and a kill on the way',
      async (t) => {
        way.down()
        await hub.kill()
        const before = node.read(pair)
        hub = await node.startHub()
        t.equal(node.read(pair), before, 'no other certificate is signed')
        way.up()
        await until('another certificate', () => node.read(pair) !== before, { seconds: 150 })
        const ended = new X509Certificate(before).validToDate.getTime() / 1000
        await until('the hub to show it', async () => {
          const metrics = (await node.network.fetch(`${node.opsUrl}/metrics`)) ?? ''
          const shown =
            /^nodehub_certificate_expiry_timestamp_seconds\{certificate="client"\} (\S+)/m
          return Number(shown.exec(metrics)?.[1]) > ended
        })
        await leaseRenewed(admin, name)
      },
    )
  },
)
