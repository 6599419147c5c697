import { BrokenAnswer, type Recorder, type RecordingPlan } from '../cache/recorder.ts'
import type { Cachers } from '../cache/cacher/cachers.ts'
import type { UpstreamHandlers } from '../cache/cacher/stored-lister-watcher.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import { withReadableEncodings } from '../../http/exchange/headers.ts'
import {
  because,
  isProven,
  provenIdentity,
  type Exchange,
  type Handler,
  type Reply,
} from '../../http/exchange/exchange.ts'
import { StatusError } from '../../api/kube/status.ts'
import { noLongerKnown } from './deadline.ts'
import { withDecodedWatches } from './decode-objects.ts'
import { answerLocally, refuseUnproven, type OfflineParts } from '../answers/offline.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Cloud } from '../upstream/cloud.ts'
import {
  CredentialsRefused,
  isBodyConsumed,
  Unreachable,
  type Forward,
  type ForwardOptions,
} from '../upstream/forward.ts'
import type { Upgrade } from '../upstream/upgrade.ts'
import { changesNothing, isObjectRead, isTrue } from '../../api/request/request-info.ts'

/** The parts for reading from an API server and for recording. */
export interface UpstreamPathParts {
  readonly forward: Forward
  readonly upgrade: Upgrade
  readonly recorder: Recorder
  readonly store: ObjectStore
  readonly onOutcome: ForwardOptions['onOutcome']
}

export interface DispatchParts extends UpstreamPathParts {
  readonly cloud: Cloud
  /** Answers from the cache. */
  readonly local: OfflineParts
  readonly cachers: Cachers
  /** Called when the cache answers a request although the hub is online. */
  readonly onDiverted: () => void
}

/**
 * Forwards each request or, offline, answers it from the cache. A request that no API server
 * answers is answered from the cache in the same exchange, with two exceptions. A write that may
 * have taken effect is answered 503. A request that only an API server can answer (see
 * `requiresUpstream`) is sent once more if an API server answers a probe made for it; that second
 * outcome stands, a 503 included. A list or get that no API server answers while none is ready, as
 * over a dead etcd, is answered from the cache where that can: else it waits.
 *
 * Where API servers refuse the hub's own credentials, the cache answers the requests that use them,
 * as offline. Reads are still sent first: one that is accepted ends the refusal. Other requests are
 * not sent while the refusal is known: a body that was partly sent could not be answered here.
 */
export function dispatcher(parts: DispatchParts): Handler<Exchange> {
  const { cloud, cachers } = parts
  const forward: Handler<Exchange> = (exchange) => new Forwarded(exchange, parts).send()
  const unlessOnline = async (exchange: Exchange): Promise<Reply> => {
    if (exchange.knownUntil?.aborted) throw noLongerKnown
    if (exchange.knownUntil) return because(await fromCache(exchange, parts), onlyOfflineReason)
    if (cloud.online === undefined) await cloud.onlineKnown()
    if (cloud.online === true) return cachers.online(exchange, forward)
    return because(await fromCache(exchange, parts), offlineReason)
  }
  return (exchange) =>
    cloud.online === true && !exchange.knownUntil
      ? cachers.online(exchange, forward)
      : unlessOnline(exchange)
}

const onlyOfflineReason =
  'no API server answers the hub, and without a valid certificate the caller is the node only then'

const offlineReason = 'no API server is healthy'

const onlineReason = (exchange: Exchange): string =>
  requiresUpstream(exchange)
    ? 'only an API server can answer it consistently'
    : 'an API server is healthy, and no cacher answers it'

/**
 * Whether only an API server may answer while any of them answers its probe: writes, and reads
 * without a resource version (a get, a list, a watch that begins with a list), which are consistent
 * reads.
 */
function requiresUpstream({ method, info }: Exchange): boolean {
  if (method !== 'GET' && method !== 'HEAD') return true
  if (!info.isResource) return false
  const { verb, query } = info
  const isList = verb === 'get' || verb === 'list' || isTrue(query.get('sendInitialEvents'))
  return isList && !query.get('resourceVersion')
}

/** The way of cachers to the API servers. */
export const upstreamHandlers = (
  parts: UpstreamPathParts,
  onUnpacked: OnUnpacked,
): UpstreamHandlers => ({
  recorded: async (exchange) => forwardWithRetry(exchange, parts),
  decoded: withDecodedWatches((exchange) => parts.forward(exchange, parts), onUnpacked),
})

/** Whether the request would be refused, and is none that could end the refusal. */
const isRefused = (exchange: Exchange, cloud: Cloud): boolean =>
  exchange.credential === 'node' &&
  (exchange.upgrade || !changesNothing(exchange)) &&
  cloud.refusal !== undefined

async function fromCache(exchange: Exchange, { local }: DispatchParts): Promise<Reply> {
  refuseUnproven(exchange)
  const span = exchange.span?.child('read the store', 'internal', {})
  try {
    return await answerLocally(exchange, local)
  } finally {
    span?.end()
  }
}

const unansweredReason = 'no API server answered the request'

/** One request that goes to the API servers, and where none answers it, to the cache. */
class Forwarded implements ForwardOptions {
  readonly #exchange: Exchange
  readonly #parts: DispatchParts
  readonly onOutcome: ForwardOptions['onOutcome']
  /** What the cache knew while no API server answered, a 404 included. */
  #kept: Reply | StatusError | undefined
  #tries = 0

  constructor(exchange: Exchange, parts: DispatchParts) {
    this.#exchange = exchange
    this.#parts = parts
    this.onOutcome = parts.onOutcome
  }

  /** Only a get of an object or a list, which the cache may answer, does not wait. */
  async insteadOfWaiting(): Promise<boolean> {
    const { method, info, upgrade } = this.#exchange
    if (method !== 'GET' || !isObjectRead(info) || upgrade) return false
    this.#kept = await fromCache(this.#exchange, this.#parts).catch((error: unknown) =>
      error instanceof StatusError && error.status.code === 404 ? error : undefined,
    )
    return this.#kept !== undefined
  }

  send(): Promise<Reply> {
    const [exchange, parts] = [this.#exchange, this.#parts]
    this.#tries++
    if (isRefused(exchange, parts.cloud))
      return insteadOfRefusal(new CredentialsRefused(), exchange, parts)
    return forwardWithRetry(exchange, parts, this).then(
      (reply) => because(reply, onlineReason(exchange)),
      (error: unknown) => this.#failed(error),
    )
  }

  async #failed(error: unknown): Promise<Reply> {
    const [exchange, parts] = [this.#exchange, this.#parts]
    if (error instanceof CredentialsRefused) return insteadOfRefusal(error, exchange, parts)
    const failed = error instanceof Unreachable || error instanceof BrokenAnswer
    if (!failed || exchange.signal.aborted) throw error
    // An API server may have acted on a request that was sent: only a read can be answered again.
    const sent = error instanceof BrokenAnswer || error.sent
    if (sent && !changesNothing(exchange)) throw error
    if (this.#kept instanceof StatusError) throw this.#kept
    const reply =
      this.#kept ?? (requiresUpstream(exchange) ? undefined : await fromCache(exchange, parts))
    if (!reply && this.#tries > 1) throw error
    if (!reply && (await parts.cloud.anyAnswers())) {
      // A body that was partly read cannot be sent again.
      if (isBodyConsumed(exchange)) throw error
      return this.send()
    }
    parts.onDiverted()
    return because(reply ?? (await fromCache(exchange, parts)), unansweredReason)
  }
}

/** The cache's answer to a request whose credentials API servers refuse. */
async function insteadOfRefusal(
  refused: CredentialsRefused,
  exchange: Exchange,
  parts: DispatchParts,
): Promise<Reply> {
  if (isBodyConsumed(exchange)) throw refused
  const reply = await fromCache(exchange, parts).catch((error: unknown) => {
    // The cache's own 503 would state that no API server can be reached.
    throw error instanceof StatusError && error.status.code === 503 ? refused : error
  })
  parts.onDiverted()
  return because(reply, "API servers refuse the hub's credentials")
}

/** Retries once where the answer to a read broke off while it was recorded. */
function forwardWithRetry(
  exchange: Exchange,
  parts: UpstreamPathParts,
  options: ForwardOptions = parts,
): Promise<Reply> {
  if (exchange.upgrade) return parts.upgrade(exchange)
  const plan = parts.recorder.plan(exchange)
  if (plan === undefined) return parts.forward(exchange, options)
  return forwardAndRecord(plan, exchange, parts, options).catch((error: unknown) => {
    const broken = error instanceof BrokenAnswer
    if (!broken || exchange.signal.aborted || !changesNothing(exchange)) throw error
    return forwardAndRecord(parts.recorder.plan(exchange) ?? plan, exchange, parts, options)
  })
}

function forwardAndRecord(
  plan: RecordingPlan,
  exchange: Exchange,
  { forward, recorder }: UpstreamPathParts,
  options: ForwardOptions,
): Promise<Reply> {
  const headers = withReadableEncodings(exchange.headers)
  const readable = headers === exchange.headers ? exchange : { ...exchange, headers }
  return forward(readable, options).then((reply) =>
    recorder.record(plan, withProvenIdentity(exchange), reply),
  )
}

/**
 * Filters read every caller's answers through the recorder. Those of an unproven caller are
 * recorded under an identity that no caller has.
 */
const withProvenIdentity = (exchange: Exchange): Exchange =>
  isProven(exchange) ? exchange : { ...exchange, identity: provenIdentity(exchange) }
