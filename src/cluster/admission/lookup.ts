import type { NodePool } from '../../api/kube/node-pool.ts'
import type { Context } from '../../node/lint/context.ts'

/**
 * What admission has to ask the cluster. `unknown`: nobody can say now; that is no reason to refuse
 * a node or a pod.
 */
export interface ClusterLookup {
  /** The pool of this name, in v1beta2; `undefined`: there is none. */
  pool(name: string): Promise<NodePool | undefined | 'unknown'>
  /** How many nodes are in the pool. */
  poolNodes(name: string): Promise<number | 'unknown'>
  /** The labels of a node; `undefined`: there is none of this name. */
  nodeLabels(name: string): Promise<Readonly<Record<string, string>> | undefined | 'unknown'>
  /** What is known of the cluster for warnings about a pod of this namespace. */
  context(namespace: string): Promise<Context>
}

/** What came of looking for the pool that something names. */
export type PoolLookup = NodePool | undefined | 'unknown'

/** Said to who names a pool that could not be found. */
export const notFoundWarning = (name: string, pool: undefined | 'unknown'): string =>
  pool === 'unknown'
    ? `NodePool ${name} could not be read now: nothing was checked against it`
    : `there is no NodePool ${name}`
