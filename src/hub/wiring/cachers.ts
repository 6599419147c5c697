import type { Logger } from 'pino'
import type { Connectivity } from '../cache/cacher/cacher.ts'
import { Cachers } from '../cache/cacher/cachers.ts'
import type { Recorder } from '../cache/recorder.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { Credential } from '../../http/exchange/exchange.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { ObjectStore } from '../store/store.ts'
import type { UpstreamHandlers } from '../cache/cacher/stored-lister-watcher.ts'
import type { EnabledFilters } from './enabled-filters.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { memoryLimit } from './memory.ts'
import { logFailure } from './log-failure.ts'

interface CachersDependencies {
  readonly cloud: Cloud
  /** The handlers that reach the API servers. */
  readonly upstream: UpstreamHandlers
  readonly store: ObjectStore
  readonly recorder: Recorder
  readonly filters: Pick<EnabledFilters, 'mayWithholdOf'>
  readonly metrics: HubMetrics
  readonly log: Logger
}

/** The share of the process's memory for the events of all collections. */
export const cachedShare = 1 / 64

export const cachersOf = (
  config: StartConfig,
  { cloud, upstream, store, recorder, filters, metrics, log }: CachersDependencies,
): Cachers =>
  new Cachers({
    store,
    upstream,
    recorder,
    comparesEvents: (exchange) => filters.mayWithholdOf(exchange),
    connectivity: (credential) => linkOf(cloud, credential),
    leastMs: config.minRequestTimeoutMs,
    mostBytes: memoryLimit(config) * cachedShare,
    hooks: {
      onUpstreamWatches: (difference) => metrics.cacherUpstreamWatches.add(difference),
      onWatchers: (difference) => metrics.cacherWatchers.add(difference),
      onWatcherEnded: (reason) => metrics.cacherWatchersEnded.add({ reason }),
      onFailed: (gvr, err) =>
        logFailure(
          log,
          'debug',
          { resource: qualifiedResource(gvr), err },
          'the upstream watch of a collection failed',
        ),
    },
  })

/** Where API servers refuse the hub's own credentials, these count as offline. */
const linkOf = (cloud: Cloud, credential: Credential): Connectivity => {
  const refusal = (): AbortSignal | undefined => (credential === 'node' ? cloud.refusal : undefined)
  return {
    online: () => (cloud.online === true ? refusal() === undefined : cloud.online),
    // A refusal also ends when no API server can be reached any more.
    changed: () => refusal() ?? cloud.onlineChanged,
  }
}
