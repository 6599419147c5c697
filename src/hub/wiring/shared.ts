import { join } from 'node:path'
import type { Logger } from 'pino'
import { Access } from '../cache/shared/access.ts'
import type { Ways } from '../cache/cacher/reflecting.ts'
import { SharedCollections } from '../cache/shared/shared-collections.ts'
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
  readonly ways: Ways
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
export const accessOf = (
  { rootDir }: StartConfig,
  { metrics, log }: Pick<SharedSurroundings, 'metrics' | 'log'>,
): Access =>
  new Access(join(rootDir, 'access.json'), {
    onVerdict: (allowed) =>
      metrics.accessReviews.add({
        result: allowed === undefined ? 'unknown' : allowed ? 'allowed' : 'refused',
      }),
    onFailure: (err) => log.error({ err }, 'who may read shared collections could not be written'),
  })

/** The collections that the components of this node share. */
export const sharedCollectionsOf = (
  config: StartConfig,
  live: () => LiveConfig,
  access: Access,
  { cloud, ways, store, metrics, log }: SharedSurroundings,
): SharedCollections =>
  new SharedCollections({
    store,
    ways,
    access,
    scope: () => live().poolScopeResources,
    link: {
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
      onWatches: (difference) => metrics.sharedWatches.add(difference),
      onReaders: (difference) => metrics.sharedReaders.add(difference),
      onReaderEnded: (reason) => metrics.sharedReadersEnded.add({ reason }),
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
