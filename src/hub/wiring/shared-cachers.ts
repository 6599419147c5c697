import { join } from 'node:path'
import type { Logger } from 'pino'
import { AccessReviews } from '../cache/shared/access-reviews.ts'
import type { UpstreamHandlers } from '../cache/cacher/stored-lister-watcher.ts'
import { SharedCachers } from '../cache/shared/shared-cachers.ts'
import type { LiveConfig, StartConfig } from '../../config/hub-config.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { ObjectStore } from '../store/store.ts'
import { memoryLimit } from './memory.ts'
import { logFailure } from './log-failure.ts'

export interface SharedSurroundings {
  readonly cloud: Cloud
  /** How the cloud is asked. */
  readonly upstream: UpstreamHandlers
  readonly store: ObjectStore
  readonly metrics: HubMetrics
  readonly log: Logger
}

/**
 * Of each collection so many of the latest groups of events are kept in memory; what is older is
 * read from the disk.
 */
export const loggedGroups = 4_096
export const loggedBytes = 8 * 1024 * 1024

/**
 * The part of the memory that all of the process may use which the log of one collection may take.
 */
export const loggedShare = 1 / 64

/** Who may read whole collections, as it was last said. */
export const accessReviewsOf = (
  { rootDir }: StartConfig,
  { metrics, log }: Pick<SharedSurroundings, 'metrics' | 'log'>,
): AccessReviews =>
  new AccessReviews(join(rootDir, 'access.json'), {
    onReviewed: (allowed) =>
      metrics.accessReviews.add({
        result: allowed === undefined ? 'unknown' : allowed ? 'allowed' : 'refused',
      }),
    onFailure: (err) => log.error({ err }, 'who may read shared collections could not be written'),
  })

/** The collections that the components of this node share. */
export const sharedCachersOf = (
  config: StartConfig,
  live: () => LiveConfig,
  access: AccessReviews,
  { cloud, upstream, store, metrics, log }: SharedSurroundings,
): SharedCachers =>
  new SharedCachers({
    store,
    upstream,
    access,
    scope: () => live().poolScopeResources,
    connectivity: {
      online: () => cloud.online,
      changed: () => cloud.onlineChanged,
      since: () => cloud.since,
    },
    leastMs: config.minRequestTimeoutMs,
    bounds: {
      groups: loggedGroups,
      bytes: Math.min(loggedBytes, memoryLimit(config) * loggedShare),
    },
    hooks: {
      onUpstreamWatches: (difference) => metrics.sharedWatches.add(difference),
      onWatchers: (difference) => metrics.sharedReaders.add(difference),
      onWatcherEnded: (reason) => metrics.sharedReadersEnded.add({ reason }),
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
