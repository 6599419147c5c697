import { follow } from '../../base/abort.ts'
import {
  provenIdentity,
  filteredBy,
  type BytesReply,
  type ByteSource,
  type Exchange,
  type Handler,
  type Reply,
  type WatchReply,
} from '../../http/exchange/exchange.ts'
import { delegateTo } from '../../http/exchange/chunks.ts'
import type { FilterChain, FilterChains } from '../filter/chain.ts'
import type { ClientCollection, ShownStates } from '../filter/shown-states.ts'
import { resourceVersion, type ResourceVersion } from '../../api/kube/resource-version.ts'
import type { Representation } from '../../api/request/representation.ts'
import { isTrue, type ResourceRequest } from '../../api/request/request-info.ts'
import { expiredWatch } from '../answers/replies.ts'
import { FilteredWatch, stateOf, type FilterChangeHooks } from './filtered-watch.ts'
import { decodeWatch } from './decode-objects.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import { selectorsOf } from '../answers/keys.ts'

/**
 * Requests the inputs that the filters of an exchange need and that were never known: an earlier
 * answer would change at once. `undefined`: there is nothing to wait for; otherwise resolves soon,
 * whether they are known or not.
 */
export type EnsureInputs = (exchange: Exchange) => Promise<void> | undefined

/** The parts that the filter layers need. */
export interface FilterParts {
  readonly ensureInputs: EnsureInputs
  readonly filters: FilterChains
  readonly shown: ShownStates
  readonly hooks: FilterChangeHooks
}

/**
 * A filtered watch. Where its client continues from a version at which it was shown objects under
 * another state of the filters, or under one that is unknown, it has to list again.
 */
export async function resumedWatch(
  parts: FilterParts,
  next: Handler<Exchange>,
  exchange: Exchange,
  info: ResourceRequest,
): Promise<Reply> {
  const { filters, shown, hooks } = parts
  const collection = clientCollectionOf(exchange, info)
  const [representation] = exchange.representations
  if (!representation || !collection) return next(exchange)
  const chainNow = (): FilterChain | undefined =>
    filters.chainFor(exchange.component, info.gvr, info.verb, info)
  const chain = chainNow()
  const isTracked = chain !== undefined || shown.has(collection)
  const from = continuesFrom(info)
  const fault = isTracked && from ? shown.faultAt(collection, stateOf(chain), from) : undefined
  if (fault !== undefined) {
    hooks.onExpired(collection, fault)
    shown.expired(collection, stateOf(chain))
    return expiredReply(representation, fault)
  }
  const ending = new AbortController()
  follow(exchange.signal, ending)
  const unread = await next({ ...exchange, signal: ending.signal })
  const onChange = (act: () => void): Disposable => filters.onChange(act)
  if (unread.kind === 'bytes' && !chain) return endedByFilters(unread, onChange, chainNow)
  const reply = unread.kind === 'bytes' ? decodeWatch(unread, exchange.representations) : unread
  if (reply.kind !== 'watch') return reply
  const watch = new FilteredWatch({
    reply,
    collection,
    shown,
    hooks,
    chainNow,
    onChange,
    chain,
    ...(from && { from }),
    bookmarks: isTrue(info.query.get('allowWatchBookmarks')),
    giveUp: () => ending.abort(),
  })
  const shownReply = { ...reply, events: watch.events(), gvk: () => watch.gvk }
  return chain?.state.acts ? filteredBy(shownReply, { filters: chain.filters }) : shownReply
}

/** `undefined`: it begins with the state of the collection, or with the next event. */
function continuesFrom({ query }: ResourceRequest): ResourceVersion | undefined {
  if (isTrue(query.get('sendInitialEvents'))) return undefined
  return resourceVersion(query.get('resourceVersion') ?? undefined)
}

const expiredReply = (representation: Representation, why: string): WatchReply => ({
  ...expiredWatch(representation, `too old resource version: ${why}`),
  from: 'hub',
  explanation: { reason: why },
})

/**
 * A watch that passes undecoded until a filter acts: then it ends, and the client has to list.
 */
function endedByFilters(
  reply: BytesReply,
  onChange: (act: () => void) => Disposable,
  chainNow: () => FilterChain | undefined,
): BytesReply {
  const source: ByteSource = (sink) => {
    // An answer whose body has arrived may end at once.
    let giveUp = (): void => undefined
    const changes = onChange(() => {
      if (!chainNow()) return
      leave()
      sink.end()
    })
    const leave = (): void => {
      changes[Symbol.dispose]()
      giveUp()
    }
    giveUp = reply.source({
      ...delegateTo(sink),
      end: (trailers) => {
        changes[Symbol.dispose]()
        sink.end(trailers)
      },
      fail: (cause) => {
        changes[Symbol.dispose]()
        sink.fail(cause)
      },
    })
    return leave
  }
  return { ...reply, source }
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
