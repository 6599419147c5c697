import type { AbortSignalLike } from '../../base/abort.ts'
import { BrokenAnswer, type Recorder, type RecordingPlan } from '../cache/recorder.ts'
import type { Cachers } from '../cache/cacher/cachers.ts'
import type { UpstreamHandlers } from '../cache/cacher/stored-lister-watcher.ts'
import type { SharedCachers } from '../cache/shared/shared-cachers.ts'
import { withReadableEncodings } from '../../http/exchange/accept-encoding.ts'
import type { BytesReply, Exchange, Handler, Reply } from '../../http/exchange/exchange.ts'
import { isProven, provenIdentity } from '../../http/exchange/proven.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import { StatusError } from '../../api/kube/status.ts'
import { objectKey } from '../answers/keys.ts'
import { newestCoveringVersion } from '../answers/covering-version.ts'
import { answerLocally, type LocalFacts } from '../answers/offline.ts'
import { coveringCollection } from '../answers/covering-collection.ts'
import type { Cloud } from '../upstream/cloud.ts'
import {
  CredentialsRefused,
  discard,
  isBodyConsumed,
  Unreachable,
  type Forward,
  type ForwardOptions,
} from '../upstream/forward.ts'
import type { Upgrade } from '../upstream/upgrade.ts'
import { changesNothing } from '../../api/request/request-info.ts'
import { answerAtStartup } from './startup-read.ts'
import {
  asNotOlderThan,
  consistentUrl,
  consistentWatchListUrl,
  notOlderThanUrl,
  lastObservedFor,
  requiresUpstream,
} from './freshness.ts'

/** The way to the cloud, what it answered before, and the recorder between them. */
export interface UpstreamPathParts {
  readonly cloud: Cloud
  readonly forward: Forward
  readonly upgrade: Upgrade
  readonly recorder: Recorder
  readonly local: LocalFacts
  /** Collections that all callers share; absent: none. */
  readonly shared?: SharedCachers
  readonly onOutcome: ForwardOptions['onOutcome']
}

export interface DispatchParts extends UpstreamPathParts {
  readonly cachers: Cachers
  /** Called when a request is answered from the cache although the hub is online. */
  readonly onDiverted: () => void
}

/**
 * Asks the cloud or, offline, the cache. A request that the cloud fails to answer is answered from
 * the cache in the same exchange, with two exceptions: a write that may have been acted upon is
 * answered 503, and a request that the cloud alone can answer (see `wantsTheCloud`), or for which
 * the cache has only an older state than its caller was shown, is sent once more if an API server
 * answers a probe made for it; the second outcome stands, a 503 included.
 *
 * Where API servers refuse the hub's own credentials, the cache answers what would go up with them,
 * as offline. Reads are sent first: one that is accepted ends the refusal. Other requests are not,
 * once the refusal is known: what was sent of a body could not be answered here.
 */
export function dispatcher(parts: DispatchParts): Handler<Exchange> {
  const { cloud, cachers, shared } = parts
  return async (exchange) => {
    if (cloud.online === undefined) {
      const early = await answerAtStartup(exchange, cloud, () =>
        fromCacheIfCurrent(exchange, parts),
      )
      if (early) return early
    }
    if (cloud.online !== true) return fromCache(exchange, parts)
    const inOrderOf = notOlderThanObserved(exchange, parts) ?? exchange
    const alone = (signal: AbortSignalLike): Promise<Reply> =>
      cachers.online({ ...inOrderOf, signal }, (own) =>
        forwardUnlessRefused({ ...exchange, signal: own }, parts),
      )
    return shared ? shared.online(inOrderOf, alone) : alone(exchange.signal)
  }
}

/**
 * How cachers ask the cloud. `parts` is called for each request: what is asked depends on what
 * shared collections have shown, and these are made with the way to the cloud.
 */
export const upstreamHandlers = (parts: () => UpstreamPathParts): UpstreamHandlers => ({
  recorded: (exchange) => forwardWithRetry(exchange, parts()),
  unrecorded: (exchange) => {
    const { forward, onOutcome } = parts()
    return forward(exchange, { onOutcome })
  },
})

async function forwardUnlessRefused(exchange: Exchange, parts: DispatchParts): Promise<Reply> {
  try {
    if (isRefused(exchange, parts.cloud)) throw new CredentialsRefused('every API server')
    return await forwardOrFallBack(exchange, parts)
  } catch (refused) {
    if (!(refused instanceof CredentialsRefused) || isBodyConsumed(exchange)) throw refused
    const reply = await fromCache(exchange, parts).catch((error: unknown) => {
      // The cache's own 503 would say that the cloud cannot be reached.
      throw error instanceof StatusError && error.status.code === 503 ? refused : error
    })
    parts.onDiverted()
    return reply
  }
}

/** Whether the request would be refused, and is none by which to find out that it no longer is. */
const isRefused = (exchange: Exchange, { refusal }: Cloud): boolean =>
  refusal !== undefined &&
  exchange.credential === 'node' &&
  (exchange.upgrade || !changesNothing(exchange))

const fromCache = async (exchange: Exchange, { shared, local }: DispatchParts): Promise<Reply> =>
  shared?.offline(exchange) ?? answerLocally(exchange, local)

/**
 * What is asked for, if the cache may answer it and it must not be older than what its caller was
 * shown: no older than that.
 */
function notOlderThanObserved(
  exchange: Exchange,
  { recorder }: DispatchParts,
): Exchange | undefined {
  const observed = requiresUpstream(exchange)
    ? undefined
    : recorder.lastObserved(withProvenIdentity(exchange))
  return observed && asNotOlderThan(exchange, observed)
}

/** The cache's answer; `undefined` where that would take back what its caller was shown. */
async function fromCacheIfCurrent(
  exchange: Exchange,
  parts: DispatchParts,
): Promise<Reply | undefined> {
  const least = notOlderThanObserved(exchange, parts)
  if (!least) return fromCache(exchange, parts)
  if (isContradicted(exchange, parts)) return undefined
  try {
    return await fromCache(least, parts)
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 504) return undefined
    throw error
  }
}

/**
 * Whether the caller was told that an object does not exist which the collection that it asks for
 * holds, as it is stored.
 */
function isContradicted(exchange: Exchange, { shared, local }: UpstreamPathParts): boolean {
  const { info } = exchange
  if (!info.isResource || info.verb === 'get') return false
  const source = coveringCollection(exchange, info, local.store)
  if (source && local.store.isContradicted(source.key)) return true
  return shared?.isContradicted(exchange) ?? false
}

async function forwardOrFallBack(exchange: Exchange, parts: DispatchParts): Promise<Reply> {
  try {
    return await forwardWithRetry(exchange, parts)
  } catch (error) {
    const failed = error instanceof Unreachable || error instanceof BrokenAnswer
    if (!failed || exchange.signal.aborted) throw error
    // An API server may have acted on what was sent: only what changes nothing there can be
    // answered a second time.
    const sent = error instanceof BrokenAnswer || error.sent
    if (sent && !changesNothing(exchange)) throw error
    const kept = requiresUpstream(exchange) ? undefined : await fromCacheIfCurrent(exchange, parts)
    if (!kept && (await parts.cloud.anyAnswers())) {
      // What was already read of a body cannot be sent again.
      if (isBodyConsumed(exchange)) throw error
      return forwardWithRetry(exchange, parts)
    }
    parts.onDiverted()
    return kept ?? fromCache(exchange, parts)
  }
}

/**
 * Asks a second time where the answer broke off while it was recorded, if what was asked changes
 * nothing.
 */
async function forwardWithRetry(exchange: Exchange, parts: UpstreamPathParts): Promise<Reply> {
  try {
    return await forwardAndRecord(exchange, parts)
  } catch (error) {
    const broken = error instanceof BrokenAnswer
    if (!broken || exchange.signal.aborted || !changesNothing(exchange)) throw error
    return forwardAndRecord(exchange, parts)
  }
}

async function forwardAndRecord(exchange: Exchange, parts: UpstreamPathParts): Promise<Reply> {
  if (exchange.upgrade) return parts.upgrade(exchange)
  const { onOutcome, forward, recorder } = parts
  const what = recorder.plan(exchange)
  if (what === undefined) return forward(exchange, { onOutcome })
  const record = (wanted: RecordingPlan, reply: BytesReply): Promise<Reply> =>
    recorder.record(wanted, withProvenIdentity(exchange), reply)
  const asked = { ...exchange, headers: withReadableEncodings(exchange.headers) }
  const told = lastObservedFor(what, () =>
    newest([parts.shared?.lastObserved(exchange), lastObservedOffline(exchange, parts.local)]),
  )
  if (told === undefined) {
    return record(what, await forward(asked, { onOutcome }))
  }
  if (what.kind === 'watch') {
    const current = { ...asked, url: consistentWatchListUrl(exchange.url) }
    return record({ ...what, isConsistent: true }, await forward(current, { onOutcome }))
  }
  if (!isContradicted(exchange, parts)) {
    const current = { ...asked, url: notOlderThanUrl(exchange.url, told) }
    const reply = await forward(current, { onOutcome })
    if (reply.status !== 504) return record(what, reply)
    // No API server has that version: all of them lag, or the cluster was restored from a backup. A
    // consistent read tells which.
    discard(reply)
  }
  const decisive = { ...asked, url: consistentUrl(exchange.url) }
  return record({ ...what, isConsistent: true }, await forward(decisive, { onOutcome }))
}

/**
 * At which version the caller would be, or was, shown offline what it asks for: a collection,
 * perhaps as a part of a wider one, or an object.
 */
function lastObservedOffline(
  exchange: Exchange,
  { store }: LocalFacts,
): ResourceVersion | undefined {
  const { info } = exchange
  if (!info.isResource) return undefined
  if (info.verb !== 'get') {
    return resourceVersion(coveringCollection(exchange, info, store)?.resourceVersion)
  }
  const records = exchange.representations.map((representation) =>
    store.get(objectKey(exchange, info, representation)),
  )
  const confirmed = records.map((found) =>
    typeof found === 'object' ? resourceVersion(found.confirmedVersion) : undefined,
  )
  return newest([...confirmed, newestCoveringVersion(exchange, info, store)])
}

const newest = (versions: readonly (ResourceVersion | undefined)[]): ResourceVersion | undefined =>
  versions
    .filter((version) => version !== undefined)
    .toSorted(compareVersions)
    .at(-1)

/**
 * A filter reads answers through the recorder for every caller; what a caller who has not proved
 * its identity was shown is recorded for nobody.
 */
const withProvenIdentity = (exchange: Exchange): Exchange =>
  isProven(exchange) ? exchange : { ...exchange, identity: provenIdentity(exchange) }
