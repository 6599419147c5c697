/**
 * A kubelet as kubeadm sets it up, which rotates its certificate, behind a hub whose link is cut
 * until that certificate has expired: it shows none from then on (client-go).
 */
import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { until } from '../kit/until.ts'
import { link } from '../kit/wire/link.ts'
import { noBareNode, openBareNode } from './bare-node.ts'
import { joinFlags, startJoinablePlane } from './joinable-plane.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(300_000)

const name = 'edge-1'
const pair = '/var/lib/kubelet/pki/kubelet-client-current.pem'

void t.test(
  'a kubelet that starts offline with an expired certificate runs its pods again',
  { skip: noBareNode(), timeout: 300_000 },
  async (t) => {
    const plane = await startJoinablePlane(t, '--cluster-signing-duration=60s')
    const { admin } = plane
    const way = await link(t, Number(new URL(plane.url).port))
    const node = await openBareNode(t, plane, { name, port: way.port })
    node.addPodNetwork()
    const { code, err } = await node.run(
      'join',
      '--nodepool-name=kiosks',
      '--host-network-pool=false',
      `--server-addr=https://127.0.0.1:${way.port}`,
      ...joinFlags(plane),
      '--image=nodehub:test',
    )
    t.equal(code, 0, err)
    const hub = await node.startHub()
    const kubelet = await node.startKubelet()
    await nodeReady(admin, name)
    const pod = busyboxPod('host', { nodeName: name }) as { spec: object }
    const spec = { ...pod.spec, hostNetwork: true }
    await admin.post('/api/v1/namespaces/default/pods', { ...pod, spec })
    await podRunning(admin, 'host')
    const container = async (): Promise<string | undefined> =>
      (await kubelet.containers()).get('host')?.id
    const before = await container()

    way.down()
    const { validToDate } = new X509Certificate(node.read(pair))
    await until('its end', () => Date.now() > validToDate.getTime(), { seconds: 90 })
    await hub.kill()
    await kubelet.powerCut()
    await Promise.all([hub.start(), kubelet.daemon.start()])

    const after = await until('the pod in another container', async () => {
      const id = await container()
      return id !== undefined && id !== before && id
    })
    t.ok(after)
    t.match(hub.log(), 'a program of the node shows no certificate at the TLS port')
    t.equal(new X509Certificate(node.read(pair)).validToDate.getTime(), validToDate.getTime())
    const metrics = await node.network.fetch(`${node.opsUrl}/metrics`)
    t.match(metrics, /nodehub_requests_total\{[^}]*component="kubelet"/)
    t.notMatch(kubelet.daemon.log(), /server is responsive, exiting/, 'it does not end itself')
  },
)
