import type { Logger } from 'pino'
import { makeFolder } from '../../base/folder.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import { isAlikeForAll, includes } from '../../api/kube/gvk.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { LogStore } from '../store/log/log-store.ts'
import { openStore } from '../store/log/open.ts'
import type { Health } from './health.ts'
import type { NodeKeys } from './node-key.ts'
import { inOwnFolder } from './own-folder.ts'

interface StoreDependencies {
  readonly keys: NodeKeys
  readonly metrics: HubMetrics
  readonly health: Health
  readonly log: Logger
}

/** Opens the store; its failures and evictions go to log, metrics and readiness. */
export const storeOf = async (
  { cachePath, cacheMaxBytes }: StartConfig,
  live: () => LiveConfig,
  { keys, metrics, health, log }: StoreDependencies,
): Promise<LogStore> => {
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
    isShared: (gvr) => isAlikeForAll(gvr) || includes(live().poolScopeResources, gvr),
    onRecovered: wrote,
    onCommitted: wrote,
  })
}
