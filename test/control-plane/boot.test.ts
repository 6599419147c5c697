import t from 'tap'
import type { BootVerdict } from '../../src/hub/boot/verdict.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/until.ts'
import { noControlPlane, nodeSubject, startControlPlane } from '../kit/control-plane.ts'
import { noKubelet, startKubelet } from '../kit/kubelet.ts'
import { busyboxPod } from './pod.ts'
import { nodeReady, podRunning } from './seen.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? noKubelet() ?? false
const namespace = '/api/v1/namespaces/default'
const nodeName = 'edge-1'

const volume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv-1' },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: '',
    hostPath: { path: '/tmp', type: 'Directory' },
  },
}

const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: '',
    volumeName: 'pv-1',
    resources: { requests: { storage: '1Gi' } },
  },
}

/** A pod with everything that needs no driver: a token, a Secret, a ConfigMap, a claim. */
function needyPod(name: string): object {
  const pod = busyboxPod(name) as { spec: Record<string, unknown> }
  const volumes = [
    { name: 'secret', secret: { secretName: 'password' } },
    { name: 'config', configMap: { name: 'config' } },
    { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
  ]
  return { ...pod, spec: { ...pod.spec, automountServiceAccountToken: true, volumes } }
}

void t.test(
  'the boot verdict on a real kubelet’s pod is ready, online and offline',
  { skip, timeout: 180_000 },
  async (t) => {
    const plane = await startControlPlane(t, { scheduler: true, controllerManager: true })
    const hub = await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
      nodeName,
    })
    await startKubelet(t, {
      nodeName,
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName), hub.secureUrl, hub.authority),
      clientCa: plane.pki.ca.certificate,
    })
    const ops = new ApiClient(hub.opsUrl)
    t.teardown(() => ops.close())
    const verdict = async (): Promise<BootVerdict> =>
      (await ops.get('/inspect/boot')).json() as unknown as BootVerdict

    await nodeReady(plane.admin, nodeName)
    await plane.admin.post(`${namespace}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'password' },
      data: {},
    })
    await plane.admin.post(`${namespace}/configmaps`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'config' },
      data: {},
    })
    t.equal((await plane.admin.post('/api/v1/persistentvolumes', volume)).status, 201)
    t.equal((await plane.admin.post(`${namespace}/persistentvolumeclaims`, claim)).status, 201)
    t.equal((await plane.admin.post(`${namespace}/pods`, needyPod('needy'))).status, 201)
    await podRunning(plane.admin, 'needy')

    await until('the verdict that the node would come back', async () => {
      const { ready, pods } = await verdict()
      return ready && pods.length === 1
    })
    const online = await verdict()
    t.ok(Date.parse(online.tokensUntil ?? '') > Date.now(), 'its token lasts')
    t.strictSame(online.pods[0]?.old, [])

    await plane.first.daemon.kill()
    await hub.daemon.restart()
    const { ready, node, pods } = await verdict()
    t.strictSame({ ready, node, pods }, { ready: true, node: online.node, pods: online.pods })
  },
)
