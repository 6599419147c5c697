import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { customResourceDefinitions } from '../../src/api/kube/resources.ts'
import { nodeName, type CloudServer } from './cloud.ts'

const nodes: GVR = { group: '', version: 'v1', resource: 'nodes' }

/**
 * OpenYurt's resources, as far as an API server has to know them to serve them; `versions` are
 * served.
 */
export function poolDefinition(
  kind: 'NodePool' | 'NodeBucket',
  versions: readonly string[],
): JsonObject {
  const singular = kind.toLowerCase()
  return {
    metadata: { name: `${singular}s.apps.openyurt.io` },
    spec: {
      group: 'apps.openyurt.io',
      scope: 'Cluster',
      names: { kind, plural: `${singular}s`, singular, listKind: `${kind}List` },
      versions: versions.map((name, at) => ({
        name,
        served: true,
        storage: at === 0,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      })),
    },
  }
}

export const poolResource = (version: string): GVR => ({
  group: 'apps.openyurt.io',
  version,
  resource: 'nodepools',
})

export const bucketResource: GVR = {
  group: 'apps.openyurt.io',
  version: 'v1alpha1',
  resource: 'nodebuckets',
}

export const nodePool = (name: string, members: readonly string[]): JsonObject => ({
  metadata: { name },
  spec: { type: 'Edge' },
  status: { nodes: [...members] },
})

export const definePools = (cloud: CloudServer, ...versions: readonly string[]): void =>
  void cloud.sandbox.create(customResourceDefinitions, poolDefinition('NodePool', versions))

export const defineBuckets = (cloud: CloudServer): void =>
  void cloud.sandbox.create(customResourceDefinitions, poolDefinition('NodeBucket', ['v1alpha1']))

/** Puts the node of the tests into a pool, or into none. */
export function putIntoPool(
  cloud: CloudServer,
  pool: string | undefined,
  labels: Readonly<Record<string, string>> = {},
): void {
  const node = cloud.sandbox.get(nodes, nodeName)
  if (!node) throw new Error('the node is not there')
  const label = pool === undefined ? {} : { 'apps.openyurt.io/nodepool': pool }
  cloud.sandbox.update(nodes, {
    ...node,
    metadata: { ...node.metadata, labels: { ...label, ...labels } },
  })
}
