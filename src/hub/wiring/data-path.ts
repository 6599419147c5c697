import { now } from '../../base/clock.ts'
import type { Logger } from 'pino'
import { Cachers } from '../cache/cacher/cachers.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import type {
  Exchange,
  Handler,
  Incoming,
  WireReply,
  Credential,
} from '../../http/exchange/exchange.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import { ShownStates } from '../filter/shown-states.ts'
import { reachAtNode } from '../identity/caller.ts'
import { Claims } from '../identity/claims.ts'
import { withdrawingRights } from '../pipeline/withdrawn-rights.ts'
import { RecordedReviews } from '../answers/recorded-reviews.ts'
import { NodeWrites } from '../answers/node-writes.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { pipeline, type PipelineParts } from '../pipeline/pipeline.ts'
import { withDecodedWatches } from '../pipeline/decode-objects.ts'
import type { EnsureInputs } from '../pipeline/filtered-watch.ts'
import {
  dispatcher,
  upstreamHandlers,
  type DispatchParts,
  type UpstreamPathParts,
} from '../pipeline/dispatch.ts'
import { trafficLabels } from '../pipeline/trace.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { withCompression } from '../upstream/compression.ts'
import { forwarder } from '../upstream/forward.ts'
import {
  reportingUpgrades,
  withAuthenticationOutcome,
  withKnownAccount,
} from '../pipeline/authentication-outcome.ts'
import { upgrader } from '../upstream/upgrade.ts'
import type { ObjectStore } from '../store/store.ts'
import { loggingExpired, type EnabledFilters } from './enabled-filters.ts'
import type { FilterInputs } from './filter-inputs.ts'
import type { ReachableAddress } from './hub-address.ts'
import type { HubContext } from './hub-context.ts'
import { memoryLimit } from './memory.ts'
import { outageOf } from './outage.ts'
import { ownKubeletOf } from './own-kubelet.ts'
import { ownHosts } from './names.ts'
import type { CloudParts } from './parts/cloud.ts'
import type { IdentityParts } from './parts/identity.ts'
import { logUnexpected, logFailure } from './log-failure.ts'
import { Recorder } from '../cache/recorder.ts'
import { ownComponent } from '../../api/request/component.ts'
import { hubIdentity, nodeIdentity } from '../../api/request/identity.ts'
import { includes, qualifiedResource } from '../../api/kube/gvk.ts'
import { isReview, type RequestInfo } from '../../api/request/request-info.ts'
import type { Connectivity, UpstreamHandlers } from '../cache/cacher/stored-lister-watcher.ts'

interface CloudPathParts
  extends
    HubContext,
    Pick<CloudParts, 'cloud' | 'connections'>,
    Pick<IdentityParts, 'clusterKeys' | 'keys' | 'owners'> {
  readonly store: ObjectStore
  readonly recorded: RecordedComponents
  readonly filters: EnabledFilters
}

/**
 * Builds the lower half of the data path: to API servers, the cache and the recorder, without
 * filters and limits.
 */
export function cloudPath(parts: CloudPathParts) {
  const { config, live, cloud, connections, store, filters, owners, metrics, log } = parts
  const { nodeName } = config
  const onUnpacked: OnUnpacked = (packed, unpacked) => {
    metrics.upstreamCompressedBytes.add(packed)
    metrics.upstreamInflatedBytes.add(unpacked)
  }
  const counted = forwarder(cloud, connections, (exchange) =>
    metrics.traffic(trafficLabels(exchange)),
  )
  const forward = withCompression(counted, {
    always: () => live().upstreamCompression,
    mayChange: (exchange) => filters.chainOf(exchange) !== undefined,
    onUnpacked,
  })
  const reviews = new RecordedReviews(store, parts.keys.tokens.reveal())
  const withdraw = withdrawingRights({
    store,
    onFailure: (err) =>
      log.error({ err }, 'a withdrawn right is not on the disk: a restart may bring it back'),
  })
  const writes = new NodeWrites(() => (cloud.online === false ? cloud.since : now()))
  const recorder = recorderOf(parts, { reviews, writes, onUnpacked })
  const ownUpstream: UpstreamPathParts = {
    forward,
    // Only callers' requests upgrade.
    upgrade: reportingUpgrades(upgrader(cloud, connections)),
    recorder,
    store,
    onOutcome: outcomesIn(metrics),
  }
  const callersUpstream: UpstreamPathParts = {
    ...ownUpstream,
    forward: withAuthenticationOutcome(forward, withdraw),
  }
  const upstream = upstreamHandlers(callersUpstream, onUnpacked)
  const cachers = cachersOf(parts, upstream, recorder)
  const { kubelet, ownUse } = ownKubeletOf({ nodeName, cloud, connections, store, owners })
  const alone: DispatchParts = {
    ...ownUpstream,
    cloud,
    local: {
      store,
      nodeName,
      writes,
      watch: (exchange, info) => cachers.offline(exchange, info),
      reachOf: async (exchange) => (cloud.online === false ? reachAtNode(exchange, owners) : 'own'),
      kubelet,
      review: (exchange, info, review) =>
        ownUse(exchange, info, review) ?? reviews.last(exchange, info, review),
    },
    cachers,
    onDiverted: () => metrics.cacheFallbacks.add(),
  }
  return {
    // For the hub's own requests. Its informers read events, also those that no cacher has.
    own: withDecodedWatches(dispatcher(alone), onUnpacked),
    /** For clients' requests. */
    dispatch: { ...alone, ...callersUpstream },
    withKnownAccount: withKnownAccount({
      keys: parts.clusterKeys,
      forward,
      cloud,
      onLearned: () => log.info('the keys of service accounts are known'),
      onFailure: (err) => log.debug({ err }, 'cannot fetch the keys of service accounts'),
    }),
    /** To be disposed of before the store. */
    cachers,
  }
}

/** Counts the outcomes of requests at each upstream, whose series are looked up once. */
function outcomesIn(metrics: HubMetrics): UpstreamPathParts['onOutcome'] {
  const series = (upstream: string) => ({
    answered: metrics.upstreamRequests.of({ upstream, outcome: 'answered' }),
    failed: metrics.upstreamRequests.of({ upstream, outcome: 'failed' }),
    duration: metrics.upstreamDuration.of({ upstream }),
  })
  const known = new Map<string, ReturnType<typeof series>>()
  return (origin, outcome, ms) => {
    const of = known.get(origin) ?? series(origin)
    known.set(origin, of)
    of[outcome].amount++
    if (outcome === 'answered') of.duration.observe(ms / 1000)
  }
}

interface Recordings {
  readonly reviews: RecordedReviews
  readonly writes: NodeWrites
  readonly onUnpacked: OnUnpacked
}

/** Each caller that has read such a collection is shown its objects as well. */
const isPoolScopeList = (info: RequestInfo, { poolScopeResources }: LiveConfig): boolean =>
  info.isResource &&
  (info.verb === 'list' || info.verb === 'watch') &&
  includes(poolScopeResources, info.gvr)

/**
 * Records answers to the configured components, those that a filter decodes through the recorder,
 * and lists and watches of pool-scope resources.
 */
function recorderOf(
  { live, store, recorded, filters, metrics, log }: CloudPathParts,
  { reviews, writes, onUnpacked }: Recordings,
): Recorder {
  const nameUnrecorded = namingUnrecorded(log)
  return new Recorder(
    store,
    (exchange) => {
      const { component, info } = exchange
      // What is denied to a caller counts, whichever program has requested the review.
      if (isReview(info)) return true
      // The hub reads its own answers through the recorder.
      if (exchange.identity === hubIdentity || component === ownComponent) return true
      if (recorded.has(component) || filters.chainOf(exchange)) return true
      if (isPoolScopeList(info, live())) return true
      nameUnrecorded(exchange)
      return false
    },
    {
      countOf: (kind) => metrics.recorded.of({ kind }),
      onStoreFailure: (err) => log.error({ err }, 'cannot record an answer'),
      onMalformed: (err, { method, info }) => {
        metrics.malformed.add()
        log.warn({ err, method, path: info.path }, 'cannot parse an answer')
      },
      onEvent: (...event) => writes.keep(...event, { sentAt: now() }),
      onUnpacked,
    },
    reviews,
  )
}

interface ClientPathParts
  extends
    HubContext,
    IdentityParts,
    Pick<ReturnType<typeof cloudPath>, 'dispatch' | 'withKnownAccount'>,
    Pick<PipelineParts, 'stopping' | 'onAnswer' | 'open' | 'admission' | 'refused' | 'tracer'> {
  readonly filters: EnabledFilters
  readonly ensureInputs: EnsureInputs
}

/** Builds the upper half of the data path: from a client's request to the filters. */
export function clientPath(parts: ClientPathParts): Handler<Incoming, WireReply> {
  const { config, live, keys, proofs, clusterKeys, owners, accepted, log, ...rest } = parts
  const { filters, ensureInputs, dispatch } = rest
  return pipeline({
    ...rest,
    callers: {
      nodeName: config.nodeName,
      get plainServed() {
        return live().plainProxy === 'served'
      },
      get anonymousLoopback() {
        return live().anonymousLoopback
      },
      claims: new Claims(keys.tokens.reveal(), proofs, clusterKeys),
      owners,
      accepted,
      outage: outageOf(dispatch.cloud, log),
    },
    filtering: { ensureInputs, filters, shown: new ShownStates(), onExpired: loggingExpired(log) },
    memoryLimitBytes: memoryLimit(config),
    ownHosts: ownHosts(config),
    onUnexpected: logUnexpected(log),
  })
}

/**
 * The components whose answers are recorded: those of the configuration, and those that the
 * cluster's ConfigMap adds. `*` stands for all.
 */
export class RecordedComponents {
  readonly #live: () => LiveConfig
  #added: ReadonlySet<string> = new Set()

  constructor(live: () => LiveConfig) {
    this.#live = live
  }

  /** Replaces the components that were added before. */
  add(components: ReadonlySet<string>): void {
    this.#added = components
  }

  has(component: string): boolean {
    return [this.#live().cacheComponents, this.#added].some(
      (names) => names.has('*') || names.has(component),
    )
  }
}

/** As many names are logged: clients choose them. */
const mostNames = 32

/**
 * Names each program once whose lists and watches with the node's credentials are not recorded: it
 * is perhaps one that the node needs to boot.
 */
function namingUnrecorded(log: Logger): (exchange: Exchange) => void {
  const names = new Set<string>()
  return ({ component, identity, info }) => {
    if (identity !== nodeIdentity || !info.isResource || names.has(component)) return
    if ((info.verb !== 'list' && info.verb !== 'watch') || names.size >= mostNames) return
    names.add(component)
    log.info(
      { component, resource: qualifiedResource(info.gvr) },
      "what this program reads with the node's credentials is not recorded, and is answered 503 without the cloud; --cache-components names those that are recorded",
    )
  }
}

/** The share of the process's memory for the events of all collections. */
export const cachedShare = 1 / 64

function cachersOf(
  { config, cloud, store, filters, metrics, log }: CloudPathParts,
  upstream: UpstreamHandlers,
  recorder: Recorder,
): Cachers {
  return new Cachers({
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
}

/** Where API servers refuse the hub's own credentials, these count as offline. */
function linkOf(cloud: Cloud, credential: Credential): Connectivity {
  const refusal = (): AbortSignal | undefined => (credential === 'node' ? cloud.refusal : undefined)
  return {
    online: () => (cloud.online === true ? refusal() === undefined : cloud.online),
    // A refusal also ends when no API server can be reached any more.
    changed: () => refusal() ?? cloud.onlineChanged,
  }
}

interface LearnParts {
  readonly filters: Pick<EnabledFilters, 'chainOf'>
  readonly inputs: Pick<FilterInputs, 'ensure'>
  readonly hubAddress: Pick<ReachableAddress, 'firstProbe'>
}

/** Requests the inputs that the filters of an exchange need, and waits for those only. */
export const ensureInputsOf =
  ({ filters, inputs, hubAddress }: LearnParts): EnsureInputs =>
  (exchange) => {
    const needs = filters.chainOf(exchange)?.needs
    if (!needs) return undefined
    const learned = inputs.ensure(needs)
    // The first pods must be directed to the same address as later ones.
    const probed = needs.has('hubAddress') ? hubAddress.firstProbe : undefined
    if (learned && probed) return Promise.all([learned, probed]).then(() => undefined)
    return learned ?? probed
  }
