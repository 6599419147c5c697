import { join } from 'node:path'
import type { Logger } from 'pino'
import { AccessReviews } from '../cache/shared/access-reviews.ts'
import type { CacherHooks } from '../cache/cacher/cacher.ts'
import type { UpstreamHandlers } from '../cache/cacher/stored-lister-watcher.ts'
import { SharedCachers } from '../cache/shared/shared-cachers.ts'
import { SharedRecords } from '../cache/shared/shared-records.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { ObjectStore } from '../store/store.ts'
import { memoryLimit } from './memory.ts'
import { logFailure } from './log-failure.ts'

export interface SharedDependencies {
  readonly cloud: Cloud
  /** The handlers that reach the API servers. */
  readonly upstream: UpstreamHandlers
  readonly store: ObjectStore
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** The bounds of each collection's events in memory; older ones are in the store. */
export const loggedGroups = 4_096
export const loggedBytes = 8 * 1024 * 1024

/** The share of the process's memory for the log of one collection. */
export const loggedShare = 1 / 64

/** Which callers may read whole collections, by their last reviews. */
export const accessReviewsOf = (
  { rootDir }: StartConfig,
  { metrics, log }: Pick<SharedDependencies, 'metrics' | 'log'>,
): AccessReviews =>
  new AccessReviews(join(rootDir, 'access.json'), {
    onReviewed: (allowed) =>
      metrics.accessReviews.add({
        result: allowed === undefined ? 'unknown' : allowed ? 'allowed' : 'refused',
      }),
    onFailure: (err) =>
      log.error({ err }, 'cannot write access.json: after a restart access is reviewed again'),
  })

interface RecordsDependencies {
  readonly live: () => LiveConfig
  readonly store: ObjectStore
  readonly access: AccessReviews
}

export const sharedRecordsOf = ({ live, store, access }: RecordsDependencies): SharedRecords =>
  new SharedRecords({
    store,
    access,
    scope: () => live().poolScopeResources,
  })

interface SharedRights {
  readonly access: AccessReviews
  readonly records: SharedRecords
}

/** The hooks that count what cachers do, by whether they are shared. */
export const countingHooks = (
  { cacherUpstreamWatches, cacherWatchers, cacherWatchersEnded }: HubMetrics,
  shared: 'true' | 'false',
): Omit<CacherHooks, 'onFailed'> => ({
  onUpstreamWatches: (difference) => cacherUpstreamWatches.add({ shared }, difference),
  onWatchers: (difference) => cacherWatchers.add({ shared }, difference),
  onWatcherEnded: (reason) => cacherWatchersEnded.add({ shared, reason }),
})

export const sharedCachersOf = (
  config: StartConfig,
  { access, records }: SharedRights,
  { cloud, upstream, store, metrics, log }: SharedDependencies,
): SharedCachers =>
  new SharedCachers({
    store,
    upstream,
    access,
    records,
    connectivity: {
      online: () => cloud.online,
      changed: () => cloud.onlineChanged,
    },
    leastMs: config.minRequestTimeoutMs,
    bounds: {
      groups: loggedGroups,
      bytes: Math.min(loggedBytes, memoryLimit(config) * loggedShare),
    },
    hooks: {
      ...countingHooks(metrics, 'true'),
      onFailed: (gvr, err, refused) => {
        const resource = qualifiedResource(gvr)
        if (refused) log.warn({ resource, err }, 'a collection cannot be shared')
        else
          logFailure(
            log,
            'debug',
            { resource, err },
            'the watch of a shared collection failed, and is repeated',
          )
      },
    },
  })
