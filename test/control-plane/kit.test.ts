import t from 'tap'
import {
  administrator,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import { busyboxPod } from './pod.ts'
import { containerId, nodeReady, podRunning } from './seen.ts'

const skip = noControlPlane() ?? noKubelet() ?? false

void t.test(
  'a kubelet straight at the API server runs a scheduled pod, and its restart ends no container',
  { skip, timeout: 110_000 },
  async (t) => {
    const started = performance.now()
    const lap = (what: string): void =>
      t.comment(`${what} after ${((performance.now() - started) / 1000).toFixed(1)} s`)
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    lap('control plane')
    const kubelet = await startKubelet(t, {
      nodeName: 'edge-1',
      kubeconfig: plane.kubeconfig(nodeSubject('edge-1')),
      clientCa: plane.pki.ca.certificate,
    })
    lap('kubelet')
    await nodeReady(plane.admin, 'edge-1')
    lap('node ready')

    const created = await plane.admin.post('/api/v1/namespaces/default/pods', busyboxPod('first'))
    t.equal(created.status, 201)
    const pod = await podRunning(plane.admin, 'first')
    lap('pod running')
    const before = await kubelet.containers()
    t.strictSame(
      [...before].map(([name, { id }]) => [name, id]),
      [['first', containerId(pod)]],
    )

    await plane.first.daemon.kill()
    await kubelet.restart()
    t.equal((await kubelet.containers()).get('first')?.id, before.get('first')?.id)
    await plane.first.daemon.start()
    lap('API server killed and back')
    await nodeReady(plane.client(administrator), 'edge-1')
  },
)
