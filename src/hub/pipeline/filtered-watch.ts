import { follow, onAbort } from '../../base/abort.ts'
import type { ErrorEvent, WatchEvent } from '../../api/codec/watch.ts'
import {
  provenIdentity,
  filteredBy,
  type Exchange,
  type Handler,
  type Reply,
  type WatchReply,
} from '../../http/exchange/exchange.ts'
import { filterEvent, type FilterChain } from '../filter/chain.ts'
import { decideAlike, unfiltered, type ChainState } from '../filter/chain-state.ts'
import type { Filters } from '../filter/filters.ts'
import { filtersChanged, type ClientCollection, type ShownStates } from '../filter/shown-states.ts'
import { resourceVersion, type ResourceVersion } from '../../api/kube/resource-version.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import { expired } from '../../api/kube/status.ts'
import type { Representation } from '../../api/request/representation.ts'
import { isTrue, type ResourceRequest } from '../../api/request/request-info.ts'
import { selectorsOf } from '../answers/keys.ts'
import { expiredWatch } from '../answers/replies.ts'
import { decodeWatch } from './decode-objects.ts'

/**
 * Requests the inputs that the filters of an exchange need and that were never known: an earlier
 * answer would change at once. `undefined`: there is nothing to wait for; otherwise resolves soon,
 * whether they are known or not.
 */
export type EnsureInputs = (exchange: Exchange) => Promise<void> | undefined

/** The parts that the filter layers need. */
export interface FilterParts {
  readonly ensureInputs: EnsureInputs
  readonly filters: Pick<Filters, 'chainOf' | 'onChange'>
  readonly shown: ShownStates
  /**
   * Called where a client has to list again: its filters decide otherwise than before, or the state
   * that it was shown is unknown.
   */
  readonly onExpired: (collection: ClientCollection, why: string) => void
}

/**
 * A filtered watch. Its client has to list again once the filters or their inputs decide otherwise,
 * and where it continues from a version at which it was shown objects under another state of them,
 * or under one that is unknown.
 */
export async function filteredWatch(
  parts: FilterParts,
  next: Handler<Exchange>,
  exchange: Exchange,
  info: ResourceRequest,
): Promise<Reply> {
  const { filters, shown } = parts
  const collection = clientCollectionOf(exchange, info)
  const [representation] = exchange.representations
  if (!representation || !collection) return next(exchange)
  const chainNow = (): FilterChain | undefined => filters.chainOf(exchange)
  const chain = chainNow()
  const isTracked = chain !== undefined || shown.has(collection)
  const from = continuesFrom(info)
  const fault = isTracked && from ? shown.faultAt(collection, stateOf(chain), from) : undefined
  if (fault !== undefined) {
    noteExpired(parts, collection, fault, chain)
    return expiredReply(representation, fault)
  }
  const ending = new AbortController()
  follow(exchange.signal, ending)
  const unread = await next({ ...exchange, signal: ending.signal })
  if (unread.kind === 'bytes' && !chain) {
    // It passes undecoded until a filter acts: then it is broken off, and the client has to list.
    const endIfFiltered = (): void => {
      if (chainNow()) ending.abort()
    }
    const changes = filters.onChange(endIfFiltered)
    onAbort(exchange.signal, () => changes[Symbol.dispose]())
    endIfFiltered()
    return unread
  }
  const reply = unread.kind === 'bytes' ? decodeWatch(unread, exchange.representations) : unread
  if (reply.kind !== 'watch') return reply
  const watch = { reply, collection, chain, chainNow, begins: !from, end: () => ending.abort() }
  const filtered = { ...reply, events: filteredEvents(parts, watch) }
  return chain?.state.acts ? filteredBy(filtered, { filters: chain.filters }) : filtered
}

/** `undefined`: it begins with the state of the collection, or with the next event. */
function continuesFrom({ query }: ResourceRequest): ResourceVersion | undefined {
  if (isTrue(query.get('sendInitialEvents'))) return undefined
  return resourceVersion(query.get('resourceVersion') ?? undefined)
}

const tooOld = (why: string): string => `too old resource version: ${why}`

const expiredReply = (representation: Representation, why: string): WatchReply => ({
  ...expiredWatch(representation, tooOld(why)),
  from: 'hub',
  explanation: { reason: why },
})

/** The event with which an API server makes a client list again. */
const expiredEvent = (why: string): ErrorEvent => ({ type: 'ERROR', status: expired(tooOld(why)) })

function noteExpired(
  { onExpired, shown }: FilterParts,
  collection: ClientCollection,
  why: string,
  chain: FilterChain | undefined,
): void {
  onExpired(collection, why)
  shown.expired(collection, stateOf(chain))
}

interface OpenWatch {
  readonly reply: WatchReply
  readonly collection: ClientCollection
  /** The chain when the watch was requested. */
  readonly chain: FilterChain | undefined
  /** The current chain; `undefined` where no filter acts. */
  readonly chainNow: () => FilterChain | undefined
  /** It begins with the state of the collection. */
  readonly begins: boolean
  /** Ends the reply. */
  readonly end: () => void
}

/** The events of a watch, until the filters decide otherwise than when it was requested. */
async function* filteredEvents(
  parts: FilterParts,
  { reply, collection, chain: first, chainNow, begins, end }: OpenWatch,
): AsyncGenerator<readonly WatchEvent[]> {
  let chain = first
  let isOutdated = false
  const compare = (): void => {
    const now = chainNow()
    isOutdated ||= !decideAlike(stateOf(chain), stateOf(now))
    if (isOutdated) end()
    else chain = now
  }
  using _changes = parts.filters.onChange(compare)
  compare()
  try {
    for await (const group of reply.events) {
      if (isOutdated) break
      const shown = chain ? filterGroup(chain, reply, group) : group
      if (shown.length > 0) yield shown
      if (begins) noteListed(parts, collection, chain, group)
    }
  } finally {
    end()
  }
  if (!isOutdated) return
  noteExpired(parts, collection, filtersChanged, chainNow())
  yield [expiredEvent(filtersChanged)]
}

function filterGroup(
  chain: FilterChain,
  reply: WatchReply,
  group: readonly WatchEvent[],
): readonly WatchEvent[] {
  if (chain.filters.length === 0) return group
  const gvk = reply.gvk()
  const { encoding } = reply.representation()
  const judge = reply.isShared ? judgeOnce : filterEvent
  return group.flatMap((event) => judge(chain, gvk, encoding, event) ?? [])
}

/** Initial events were passed on: they are a list. */
function noteListed(
  { shown }: FilterParts,
  collection: ClientCollection,
  chain: FilterChain | undefined,
  group: readonly WatchEvent[],
): void {
  for (const event of group)
    if (event.type === 'BOOKMARK' && event.initialEventsEnd)
      shown.listed(collection, stateOf(chain), event.resourceVersion)
}

export const stateOf = (chain: FilterChain | undefined): ChainState => chain?.state ?? unfiltered

/** The results of chains for events that several watches share; collected with the event. */
const results = new WeakMap<WatchEvent, Map<FilterChain, WatchEvent | undefined>>()

/** The same as `filterEvent`, but one result for all watches with the same chain. */
const judgeOnce: typeof filterEvent = (chain, gvk, encoding, event) => {
  let made = results.get(event)
  if (!made) results.set(event, (made = new Map()))
  if (!made.has(chain)) made.set(chain, filterEvent(chain, gvk, encoding, event))
  return made.get(chain)
}

/**
 * The collection that a client gets by a list or watch; `undefined` where it is not recorded. An
 * unproven caller counts under no identity of its own.
 */
export function clientCollectionOf(
  exchange: Exchange,
  info: ResourceRequest,
): ClientCollection | undefined {
  const { component, representations } = exchange
  const [representation] = representations
  if (!representation || info.name !== undefined) return undefined
  try {
    return {
      identity: provenIdentity(exchange),
      component,
      gvr: info.gvr,
      namespace: info.namespace,
      ...selectorsOf(info),
    }
  } catch (error) {
    if (error instanceof MalformedSelector) return undefined
    throw error
  }
}
