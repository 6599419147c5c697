import type { Logger } from 'pino'
import type { Cachers } from '../cache/cacher/cachers.ts'
import type { SharedCollections } from '../cache/shared/shared-collections.ts'
import type { Connections } from '../client/connections.ts'
import type { LiveConfig, StartConfig } from '../config/hub-config.ts'
import type { Exchange, Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import type { OnUnpacked } from '../exchange/unpacked.ts'
import type { Shown } from '../filter/shown.ts'
import { Claims } from '../identity/claims.ts'
import type { ClusterKeys } from '../identity/cluster-keys.ts'
import type { Proofs } from '../identity/proofs.ts'
import type { SocketOwners } from '../identity/socket-owner.ts'
import { Shadows } from '../local/shadows.ts'
import type { HubMetrics } from '../metrics/metrics.ts'
import type { Learn } from '../pipeline/inputs.ts'
import { dispatcher, type DispatchParts } from '../pipeline/dispatch.ts'
import { pipeline } from '../pipeline/pipeline.ts'
import type { Noticing } from '../pipeline/taken-over.ts'
import { countingBytes } from '../pipeline/traffic.ts'
import type { OnAnswer } from '../pipeline/trace.ts'
import type { Cloud } from '../remote/cloud.ts'
import { compressing } from '../remote/compression.ts'
import { forwarder } from '../remote/forward.ts'
import { upgrader } from '../remote/upgrade.ts'
import type { ObjectStore } from '../store/store.ts'
import { owedHooks, type EnabledFilters } from './filters.ts'
import { memoryLimit } from './memory.ts'
import { ownHosts } from './names.ts'
import type { NodeKeys } from './node-key.ts'
import { cachersOf } from './cachers.ts'
import { recorderOf } from './recorder.ts'
import { unforeseenIn } from './unforeseen.ts'

export interface DataPathParts {
  readonly noticing: Noticing
  readonly config: StartConfig
  /** Read anew for each request. */
  readonly live: () => LiveConfig
  readonly cloud: Cloud
  readonly connections: Connections
  readonly store: ObjectStore
  readonly proofs: Proofs
  readonly clusterKeys: ClusterKeys
  readonly keys: NodeKeys
  readonly owners: SocketOwners
  readonly shared: SharedCollections
  readonly filters: EnabledFilters
  /** Asks for what the filters of an exchange need to know. */
  readonly learn: Learn
  /** Components whose answers are recorded besides those of the configuration. */
  readonly cacheAgents: () => ReadonlySet<string>
  readonly shown: Shown
  /** Aborts when the hub is told to stop. */
  readonly stopping: AbortSignal
  readonly metrics: HubMetrics
  readonly log: Logger
  readonly onAnswer: OnAnswer
}

export interface DataPath {
  /** For what clients ask. */
  readonly handler: Handler<Incoming, WireReply>
  /**
   * For what the hub asks itself: the way to the cloud and the record, without filters and limits.
   */
  readonly dispatch: Handler<Exchange>
  /** The same, as one of those who read what is shared. */
  readonly sharing: Handler<Exchange>
  /** To be disposed of before the store. */
  readonly cachers: Cachers
}

/** Builds the pipeline of this hub. */
export function dataPath(parts: DataPathParts): DataPath {
  const { config, live, proofs, clusterKeys, filters, shown, stopping, metrics, log, onAnswer } =
    parts
  const dispatch = dispatchParts(parts)
  const handler = pipeline({
    callers: {
      nodeName: config.nodeName,
      get plainServed() {
        return live().plainProxy === 'served'
      },
      get anonymousLoopback() {
        return live().anonymousLoopback
      },
      claims: new Claims(parts.keys.tokens.reveal(), proofs, clusterKeys),
      owners: parts.owners,
    },
    metrics,
    learn: parts.learn,
    filtering: { filters, shown, store: parts.store, hooks: owedHooks(metrics, log) },
    noticing: parts.noticing,
    learning: {
      keys: clusterKeys,
      onLearned: () => log.info('the keys of service accounts are known'),
      onFailure: (err) => log.debug({ err }, 'the keys of service accounts could not be had'),
    },
    get maxRequestsInFlight() {
      return live().maxRequestsInFlight
    },
    memoryLimitBytes: memoryLimit(config),
    stopping,
    ownHosts: ownHosts(config),
    dispatch,
    onUnforeseen: unforeseenIn(log),
    onAnswer,
  })
  // What all callers share is asked for the callers' way alone.
  const { shared: _, ...rest } = dispatch
  const own = dispatcher(rest)
  return { handler, dispatch: own, sharing: sharing(parts, own), cachers: dispatch.cachers }
}

/**
 * A watch that is diverted to the cache while online ends at once, unless the hub is refused: no
 * change of spell would end it later.
 */
function recoveryOf({ credential }: Exchange, cloud: Cloud): AbortSignal {
  if (cloud.online !== true) return cloud.spell
  return (credential === 'node' ? cloud.refusal : undefined) ?? AbortSignal.abort()
}

/**
 * How long the hub waits for a collection to be shared before it asks for it alone: it has time,
 * and the link may be thin.
 */
const sharedMs = 60_000

/** A list is waited for, so that it costs no second one. */
const sharing =
  ({ cloud, shared }: DataPathParts, own: Handler<Exchange>): Handler<Exchange> =>
  async (exchange) => {
    if (cloud.online !== true) return shared.offline(exchange) ?? own(exchange)
    if (exchange.info.verb === 'list') await shared.prepare(exchange, sharedMs)
    return shared.online(exchange, (signal) => own({ ...exchange, signal }))
  }

/** What the dispatcher needs: the way to the cloud, the cache, and the recorder between them. */
function dispatchParts(parts: DataPathParts): DispatchParts {
  const { config, live, cacheAgents, cloud, connections, store, filters, metrics, log } = parts
  const { shared } = parts
  const { nodeName } = config
  const onUnpacked: OnUnpacked = (packed, unpacked) => {
    metrics.upstreamCompressedBytes.add(packed)
    metrics.upstreamInflatedBytes.add(unpacked)
  }
  const recorder = recorderOf(store, { live, cacheAgents, filters, onUnpacked, metrics, log })
  const cachers = cachersOf(config, { cloud, store, recorder, metrics, log })
  return {
    cloud,
    forward: compressing(countingBytes(forwarder(cloud, connections), metrics), {
      always: () => live().upstreamCompression,
      mayChange: (exchange) => filters.actOn(exchange),
      onUnpacked,
    }),
    upgrade: upgrader(cloud, connections),
    recorder,
    local: {
      store,
      nodeName,
      shadows: new Shadows(),
      watch: (exchange, info) => cachers.offline(exchange, info),
      recovered: (exchange) => recoveryOf(exchange, cloud),
    },
    cachers,
    shared,
    onOutcome: (upstream, outcome, ms) => {
      metrics.upstreamRequests.add({ upstream, outcome })
      if (outcome === 'answered') metrics.upstreamDuration.observe({ upstream }, ms / 1000)
    },
    onDiverted: () => metrics.diverted.add(),
  }
}
