import type { NodePool } from '../api/kube/node-pool.ts'
import type { ApiServer } from './api/api-server.ts'
import type { Informer } from '../api/reflector/informer.ts'
import { apiInformer, type ApiInformerOptions } from './api/informer.ts'

/** Of the collection of pools, in the version they are stored in. */
export const poolsPath = '/apis/apps.openyurt.io/v1beta2/nodepools'

/** Of their definition. */
export const poolDefinitionPath =
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.apps.openyurt.io'

/** Follows all NodePools, whole: there are hundreds where there are thousands of nodes. */
export const poolInformer = (
  api: ApiServer,
  options: Pick<ApiInformerOptions<NodePool>, 'onChange' | 'onFailure'> = {},
): Informer<NodePool> =>
  apiInformer(api, {
    path: poolsPath,
    // The API server keeps objects of this kind to their schema.
    transform: (object) => withoutManagers(object as unknown as NodePool),
    ...options,
  })

/** managedFields are a large part of a small object, and are not used. */
function withoutManagers(pool: NodePool): NodePool {
  const { managedFields: _, ...metadata } = pool.metadata as NodePool['metadata'] & {
    managedFields?: unknown
  }
  return { ...pool, apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool', metadata }
}
