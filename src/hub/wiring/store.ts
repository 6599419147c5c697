import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../base/folder.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { LogStore } from '../store/log/log-store.ts'
import { openStore } from '../store/log/open.ts'
import type { HubContext } from './hub-context.ts'
import type { Health } from './health.ts'
import { inOwnFolder } from './own-folder.ts'
import type { CloudParts } from './parts/cloud.ts'
import type { IdentityParts } from './parts/identity.ts'

interface StoreDependencies extends HubContext {
  readonly keys: IdentityParts['keys']
  readonly cluster: Pick<CloudParts['cluster'], 'answered'>
  readonly cloud: Pick<CloudParts['cloud'], 'online' | 'onlineKnown'>
  readonly health: Health
  /** Whether one copy of a resource is kept for all callers. */
  readonly isShared: (gvr: GVR) => boolean
}

/** Opens the store; its failures and evictions go to log, metrics and readiness. */
export async function storeOf(parts: StoreDependencies): Promise<LogStore> {
  const { config, isShared, keys, metrics, health, log } = parts
  const { cachePath, cacheMaxBytes } = config
  const setFormerAside = await checkFormer(parts)
  // The store makes it, too, and knows no flags.
  inOwnFolder('--disk-cache-path', cachePath, () => makeFolder(cachePath, 0o700))
  const store = await openStore({
    directory: cachePath,
    maxBytes: cacheMaxBytes,
    sealingKey: keys.sealing.reveal(),
    report: (kind, err) => {
      if (kind === 'write') health.storeFailed(err.message)
      if (kind === 'write') metrics.storeFailures.add()
      if (kind === 'damaged') metrics.storeDamaged.add()
      if (kind === 'unusable') {
        health.storeUnusable()
        metrics.storeSetAside.add()
      }
      // Damaged records are read again from the cloud.
      if (kind === 'damaged') log.warn({ err }, 'a record is damaged, and is set aside')
      else log.error({ err, kind }, 'the store failed')
    },
    onEvicted: (kind, count) => {
      metrics.storeEvicted.add({ kind }, count)
      log.warn(
        { kind, count, maxBytes: cacheMaxBytes },
        'the cache is near its maximum size: the least needed records were evicted',
      )
    },
    isShared,
    onRecovered: () => {
      log.info('the store takes writes again')
      health.storeWrote()
    },
  })
  setFormerAside()
  return store
}

/** The database of releases before 0.3.0, which this one does not read. */
const database = /^objects\.db(-wal|-shm)?$/

const formerFiles = (cachePath: string): readonly string[] =>
  existsSync(cachePath) ? readdirSync(cachePath).filter((name) => database.test(name)) : []

/** What a start does with the store of a former release; `undefined`: there is none. */
export const formerStoreNote = (cachePath: string): string | undefined =>
  formerFiles(cachePath).length === 0
    ? undefined
    : `${cachePath} has the cache of a release before 0.3.0: start sets it aside and begins an empty one where an API server answers, and is refused where none does`

/** The node may have nothing else to boot from. */
class FormerStore extends Error {
  readonly code = 'FORMER_STORE'
}

/**
 * Rejects where there is the store of a former release and no API server answers, from which all
 * can be read again; to be called before anything is written. Resolves with what sets it aside, to
 * be called when this process has the folder to itself.
 */
async function checkFormer({
  config: { cachePath },
  cluster,
  cloud,
  log,
}: StoreDependencies): Promise<() => void> {
  const files = formerFiles(cachePath)
  if (files.length === 0) return () => undefined
  const online = cloud.onlineKnown().then(() => cloud.online === true)
  if (!(await Promise.race([cluster.answered.then(() => true), online])))
    throw new FormerStore(
      `${cachePath} has the cache of a release before 0.3.0, which this one cannot read, and no API server answers: start the former release, or this one when there is a link; to begin with an empty cache, move objects.db* away`,
    )
  return () => {
    for (const name of files) renameSync(join(cachePath, name), join(cachePath, `${name}.former`))
    log.warn(
      { aside: join(cachePath, 'objects.db.former') },
      'the cache of a release before 0.3.0 is set aside, and begins empty',
    )
  }
}
