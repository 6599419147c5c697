import type { JsonObject } from '../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../api/kube/json-at.ts'
import type { ApiServer } from './api/api-server.ts'
import { isConflict, isNotFound } from './api/failure.ts'
import { storageVersion } from './crd/schema.ts'
import { poolDefinitionPath, poolsPath } from './pools.ts'

/** What was done: how many pools were rewritten, or why nothing was. */
export type MigrationResult =
  | { readonly rewritten: number }
  | { readonly left: 'no definition' | 'up to date' | 'another version is stored' }

/**
 * Rewrites every stored pool in the version that pools are stored in now, and then takes the older
 * versions off the definition's list: as long as they stand there, they cannot be taken out of it.
 * A pool that somebody else writes meanwhile is rewritten by that.
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

/** A patch that says nothing: what is stored in another version is written all the same. */
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
