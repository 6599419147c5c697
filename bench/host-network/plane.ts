import { webhookConfigurations } from '../../src/cluster/admission/webhooks.ts'
import { nodesKeptInPools } from '../../src/cluster/admission/policies.ts'
import { listAt, textAt } from '../../src/api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import {
  controllers,
  bodyOf,
  install,
  installPools,
  type Webhooks,
  webhooksFor,
} from '../../test/cluster/admission/cluster.ts'
import { letNodesRead, makePool } from '../../test/control-plane/host-network-pool.ts'
import type { ApiClient } from '../../test/kit/cluster/api-client.ts'
import { until } from '../../test/kit/until.ts'
import { openWorkspace, type Scope } from '../../test/kit/cluster/workspace.ts'
import { type ControlPlane, startControlPlane } from '../../test/kit/control-plane.ts'
import { pool } from './arms.ts'
import { Audit } from './audit.ts'
import { type Followed, follow } from './followed.ts'
import { namespaces } from './workloads.ts'

/** A control plane with NodePools and their admission, and one host-network pool in it. */
export interface RealPlane {
  readonly plane: ControlPlane
  readonly audit: Audit
  readonly webhooks: Webhooks
  readonly followed: Followed
}

/** Starts all of it; it ends with the scope. */
export async function startRealPlane(t: Scope): Promise<RealPlane> {
  const audit = new Audit(openWorkspace(t))
  const plane = await startControlPlane(t, {
    scheduler: true,
    controllerManager: true,
    apiserverFlags: audit.flags,
  })
  const { admin } = plane
  const webhooks = await webhooksFor(t, admin)
  await webhooks.start()
  await installPools(admin, webhooks.target)
  await install(admin, nodesKeptInPools(controllers))
  const names = { namespace: 'nodehub-system', name: 'nodehub-cluster' }
  await install(admin, webhookConfigurations(webhooks.target, controllers, names))
  await letNodesRead(plane)
  await makePool(plane, pool)
  await webhooksAsked(admin)
  await makeBaselineNamespace(admin)
  return { plane, audit, webhooks, followed: await follow(t, plane) }
}

async function makeBaselineNamespace(admin: ApiClient): Promise<void> {
  const name = namespaces.baseline
  const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' }
  await admin.post('/api/v1/namespaces', { metadata: { name, labels } })
  await until('its service account', async () => {
    const { status } = await admin.get(`/api/v1/namespaces/${name}/serviceaccounts/default`)
    return status === 200
  })
}

/** Configurations are obeyed a moment after they were written. */
async function webhooksAsked(admin: ApiClient): Promise<void> {
  const labels = { [nodePoolLabel]: pool }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'tried', labels } }
  await until('webhooks to be asked', async () => {
    const answer = await admin.post('/api/v1/nodes?dryRun=All', node)
    return textAt(bodyOf(answer), 'metadata', 'labels', hostNetworkLabel) === 'true'
  })
}

/** What runs on its nodes: Kubernetes and containerd. */
export async function versionsOf({ plane }: RealPlane): Promise<[string, string]> {
  const [node] = listAt(bodyOf(await plane.admin.get('/api/v1/nodes')), 'items')
  const [kubelet, runtime] = ['kubeletVersion', 'containerRuntimeVersion'].map((each) =>
    textAt(node, 'status', 'nodeInfo', each),
  )
  return [kubelet ?? '', (runtime ?? '').replace('containerd://', '')]
}
