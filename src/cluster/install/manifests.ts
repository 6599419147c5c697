import { controllersOf } from '../admission/actors.ts'
import { nodesKeptInPools } from '../admission/policies.ts'
import { webhookConfigurations } from '../admission/webhooks.ts'
import { poolDefinition } from '../crd/definition.ts'
import type { Installation } from './installation.ts'
import { roles } from './roles.ts'
import { workload } from './workload.ts'

/**
 * All objects of the cluster's side, in an order in which they can be applied: nothing that waits
 * for webhooks comes before them. The configurations name no CA: `nodehub cluster` writes its own
 * into them.
 */
export function clusterManifests(installation: Installation): readonly object[] {
  const { name, namespace } = installation
  const target = { at: { namespace, name, port: 443 } }
  const controllers = controllersOf(installation, installation.controllers)
  return [
    ...(namespace === 'kube-system' ? [] : [ownNamespace(namespace)]),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    ...roles(installation),
    poolDefinition(target),
    ...workload(installation),
    ...nodesKeptInPools(controllers),
    ...webhookConfigurations(target, controllers, installation),
  ]
}

const ownNamespace = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name,
    labels: Object.fromEntries(
      ['enforce', 'audit', 'warn'].map((mode) => [
        `pod-security.kubernetes.io/${mode}`,
        'restricted',
      ]),
    ),
  },
})
