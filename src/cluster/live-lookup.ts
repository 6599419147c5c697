import { LRUCache } from 'lru-cache'
import type { JsonObject } from '../api/kube/json.ts'
import { listAt, objectAt } from '../api/kube/json-at.ts'
import { nodePoolLabel, type NodePool } from '../api/kube/node-pool.ts'
import { contextOf } from '../node/lint/context.ts'
import type { ClusterLookup } from './admission/lookup.ts'
import { isDnsLabel } from '../api/kube/names.ts'
import type { ApiServer } from './api/api-server.ts'
import type { Informer } from '../api/reflector/informer.ts'
import { poolsPath } from './pools.ts'

/**
 * An API server waits five seconds for a webhook, and a pod may need two lookups in sequence. After
 * this time the answer is `unknown`: without any answer the pod would not be handled at all.
 */
const patienceMs = 2_000

/** How long a read level of a namespace counts: only warnings depend on it. */
const namespaceMs = 30_000

const metadataOnly = (kind: string): string =>
  `application/json;as=${kind};g=meta.k8s.io;v=1,application/json`

/**
 * The cluster state that admission reads. Pools come from the informer, and from the API server
 * where they are not there yet. Nodes come from the API server, as only the leader has an informer
 * of them.
 */
export function liveLookup(api: ApiServer, pools: Informer<NodePool>): ClusterLookup {
  // Retry-After is longer than the webhook's deadline.
  const ask = (path: string, accept: string): Promise<JsonObject | undefined | 'unknown'> =>
    api.get(path, { accept, timeoutMs: patienceMs, tries: 1 }).catch(() => 'unknown' as const)
  const namespaces = new LRUCache<string, JsonObject>({ max: 2_000, ttl: namespaceMs })
  const namespaceOf = async (name: string): Promise<JsonObject | undefined> => {
    const known = namespaces.get(name)
    if (known) return known
    // Any client can write this name: only that of a namespace becomes part of a path.
    if (!isDnsLabel(name)) return undefined
    const found = await ask(`/api/v1/namespaces/${name}`, 'application/json')
    if (found === undefined || found === 'unknown') return undefined
    const labels = objectAt(found, 'metadata', 'labels')
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
    namespaces.set(name, namespace)
    return namespace
  }
  return {
    context: async (name) => {
      const namespace = name === '' ? undefined : await namespaceOf(name)
      const known = [...pools.items.values()] as unknown as readonly JsonObject[]
      return contextOf(namespace ? [...known, namespace] : known)
    },
    pool: async (name) =>
      pools.items.get(name) ??
      ((await ask(`${poolsPath}/${encodeURIComponent(name)}`, 'application/json')) as unknown as
        NodePool | undefined | 'unknown'),
    poolNodes: async (name) => {
      const query = new URLSearchParams({ labelSelector: `${nodePoolLabel}=${name}`, limit: '500' })
      const found = await ask(`/api/v1/nodes?${query}`, metadataOnly('PartialObjectMetadataList'))
      return found === undefined || found === 'unknown' ? 'unknown' : listAt(found, 'items').length
    },
    nodeLabels: async (name) => {
      const path = `/api/v1/nodes/${encodeURIComponent(name)}`
      const found = await ask(path, metadataOnly('PartialObjectMetadata'))
      return found === undefined || found === 'unknown'
        ? found
        : (objectAt(found, 'metadata', 'labels') as Record<string, string>)
    },
  }
}
