import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { textAt } from '../../src/api/kube/json-at.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { customResources } from './admission-kinds.ts'

const group = 'rbac.authorization.k8s.io'

const kinds = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'] as const

/** The resource of a kind of policies. */
export const policyResource = (kind: string): GVR => ({
  group,
  version: 'v1',
  resource: `${kind.toLowerCase()}s`,
})

/** RBAC objects for an API server in memory, which does not decide by them. */
export function defineRbacKinds(sandbox: Sandbox): void {
  for (const kind of kinds) {
    const { resource } = policyResource(kind)
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

/** Creates RBAC objects of any kind. */
export function createPolicies(sandbox: Sandbox, ...policies: readonly JsonObject[]): void {
  for (const policy of policies) {
    sandbox.create(
      policyResource(textAt(policy, 'kind')),
      policy as Parameters<Sandbox['create']>[1],
    )
  }
}
