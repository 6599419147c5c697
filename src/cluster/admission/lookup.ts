import type { NodePool } from '../../api/kube/node-pool.ts'
import type { Context } from '../../node/lint/context.ts'

/**
 * The cluster state that admission reads. `unknown`: it cannot be read now, which is no reason to
 * refuse a node or a pod.
 */
export interface ClusterLookup {
  /** The pool of this name, in v1beta2; `undefined`: there is none. */
  pool(name: string): Promise<NodePool | undefined | 'unknown'>
  /** How many nodes are in the pool. */
  poolNodes(name: string): Promise<number | 'unknown'>
  /** The labels of a node; `undefined`: there is none of this name. */
  nodeLabels(name: string): Promise<Readonly<Record<string, string>> | undefined | 'unknown'>
  /** The cluster state behind warnings about a pod of this namespace. */
  context(namespace: string): Promise<Context>
}

/** The result of reading a pool by name. */
export type PoolLookup = NodePool | undefined | 'unknown'

/** The warning for an object that names a pool that could not be read. */
export const notFoundWarning = (name: string, pool: undefined | 'unknown'): string =>
  pool === 'unknown'
    ? `NodePool ${name} could not be read now: nothing was checked against it`
    : `there is no NodePool ${name}`
