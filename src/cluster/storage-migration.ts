import type { JsonObject } from '../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../api/kube/json-at.ts'
import type { ApiServer } from './api/api-server.ts'
import { isConflict, isNotFound } from './api/failure.ts'
import { storageVersion } from './crd/node-pool-schema.ts'
import { poolDefinitionPath, poolsPath } from './pools.ts'

/** The outcome: how many pools were rewritten, or why none was. */
export type MigrationResult =
  | { readonly rewritten: number }
  | { readonly left: 'no definition' | 'up to date' | 'another version is stored' }

/**
 * Rewrites every stored pool in the current storage version, and then removes the older versions
 * from the definition's storedVersions: until then they cannot be removed from its spec. A pool
 * that another client writes in the meantime is rewritten by that.
 */
export async function migrateStorage(
  api: ApiServer,
  holds: () => boolean,
  signal: AbortSignal,
): Promise<MigrationResult> {
  const definition = await api.get(poolDefinitionPath, signal)
  if (definition === undefined) return { left: 'no definition' }
  const stored = listAt(definition, 'status', 'storedVersions')
  if (stored.length === 1 && stored[0] === storageVersion) return { left: 'up to date' }
  const current = listAt(definition, 'spec', 'versions').find(
    (version) => valueAt(version, 'storage') === true,
  )
  if (textAt(current, 'name') !== storageVersion) return { left: 'another version is stored' }
  let rewritten = 0
  for await (const pool of api.list(poolsPath, {}, signal)) {
    if (!holds()) throw new Error('another process may lead by now')
    if (await rewrite(api, pool, signal)) rewritten++
  }
  const resourceVersion = textAt(definition, 'metadata', 'resourceVersion')
  const patch = { metadata: { resourceVersion }, status: { storedVersions: [storageVersion] } }
  if (!holds()) throw new Error('another process may lead by now')
  await api.patch(`${poolDefinitionPath}/status`, 'merge', patch, signal)
  return { rewritten }
}

/**
 * An empty patch: the API server rewrites an object that is stored in another version all the same.
 */
async function rewrite(api: ApiServer, pool: JsonObject, signal: AbortSignal): Promise<boolean> {
  const name = textAt(pool, 'metadata', 'name')
  const resourceVersion = textAt(pool, 'metadata', 'resourceVersion')
  try {
    await api.patch(`${poolsPath}/${name}`, 'merge', { metadata: { resourceVersion } }, signal)
    return true
  } catch (cause) {
    if (isConflict(cause) || isNotFound(cause)) return false
    throw cause
  }
}
