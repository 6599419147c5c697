import type { Logger } from 'pino'
import type { Broadcast } from '../../base/broadcast.ts'
import { makeFolder } from '../../base/folder.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { FindReferencedObjects } from '../store/named-object.ts'
import { openStore } from '../store/sqlite/open.ts'
import type { SqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Health } from './health.ts'
import type { NodeKeys } from './node-key.ts'
import { inOwnFolder } from './own-folder.ts'

interface StoreDependencies {
  readonly keys: NodeKeys
  readonly metrics: HubMetrics
  readonly health: Health
  readonly log: Logger
  /** Announced after each commit. */
  readonly committed: Broadcast
  readonly needed: FindReferencedObjects
}

/** Opens the store; its failures and evictions go to log, metrics and readiness. */
export const storeOf = async (
  { cachePath, cacheMaxBytes }: StartConfig,
  { keys, metrics, health, log, committed, needed }: StoreDependencies,
): Promise<SqliteStore> => {
  const wrote = (): void => {
    if (health.storeFailure !== undefined) log.info('the store takes writes again')
    health.storeWrote()
  }
  // The store makes it, too, and knows no flags.
  inOwnFolder('--disk-cache-path', cachePath, () => makeFolder(cachePath, 0o700))
  return openStore({
    directory: cachePath,
    maxBytes: cacheMaxBytes,
    sealingKey: keys.sealing.reveal(),
    report: (kind, err) => {
      if (kind === 'write' || kind === 'writer') health.storeFailed(err.message)
      if (kind === 'write') metrics.storeFailures.add()
      if (kind === 'damaged') metrics.storeDamaged.add()
      if (kind === 'set-aside') {
        health.storeSetAside()
        metrics.storeSetAside.add()
      }
      // Damaged records are read again from the cloud.
      if (kind === 'damaged') log.warn({ err }, 'a record is damaged, and is set aside')
      else log.error({ err, kind }, 'the store failed')
    },
    onEvicted: (counts, identity) => {
      for (const [kind, count] of counts) metrics.storeEvicted.add({ kind }, count)
      if (identity !== undefined) {
        log.warn(
          { identity, evicted: counts.get('quota'), maxBytes: cacheMaxBytes },
          'a caller exceeds its share of the cache: its least recently used records were evicted',
        )
        return
      }
      log.warn(
        { evicted: Object.fromEntries(counts), maxBytes: cacheMaxBytes },
        'the cache is near its maximum size: the least needed records were evicted',
      )
    },
    referencedObjects: needed,
    onRecovered: wrote,
    onCommitted: (bytes) => {
      wrote()
      metrics.storeCommits.add()
      metrics.storeWrittenBytes.add(bytes)
      committed.announce()
    },
  })
}
