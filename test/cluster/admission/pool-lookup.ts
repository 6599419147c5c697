import type { ClusterLookup } from '../../../src/cluster/admission/lookup.ts'
import type { NodePool, NodePoolSpec } from '../../../src/api/kube/node-pool.ts'

export const poolNamed = (name: string, spec: NodePoolSpec = {}): NodePool => ({
  apiVersion: 'apps.openyurt.io/v1beta2',
  kind: 'NodePool',
  metadata: { name },
  spec: { type: 'Edge', ...spec },
})

/** Knows these pools, without nodes; the one called `unread` cannot be read. */
export const lookupOf = (...pools: readonly NodePool[]): ClusterLookup => ({
  pool: async (name) =>
    name === 'unread' ? 'unknown' : pools.find((pool) => pool.metadata.name === name),
  poolNodes: async () => 0,
  nodeLabels: async () => undefined,
  context: async () => ({ pools: new Map(), namespaces: new Map() }),
})
