import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { customResources } from './admission-kinds.ts'

const group = 'rbac.authorization.k8s.io'

const kinds = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'] as const

/** RBAC objects for an API server in memory, which does not decide by them. */
export function defineRbacKinds(sandbox: Sandbox): void {
  for (const kind of kinds) {
    const resource = `${kind.toLowerCase()}s`
    sandbox.create(customResources, {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${resource}.${group}` },
      spec: {
        group,
        names: { kind, plural: resource, singular: kind.toLowerCase() },
        scope: kind.startsWith('Cluster') ? 'Cluster' : 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true }],
      },
    })
  }
}
