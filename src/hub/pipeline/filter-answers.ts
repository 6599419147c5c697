import { BrokenAnswer } from '../cache/recorder.ts'
import {
  filteredBy,
  type Exchange,
  type Handler,
  type ListReply,
  type ObjectReply,
  type Reply,
  type Filtered,
} from '../../http/exchange/exchange.ts'
import type { FilterChain } from '../filter/chain.ts'
import { StatusError, notFound, serviceUnavailable } from '../../api/kube/status.ts'
import { isRead, type ResourceRequest } from '../../api/request/request-info.ts'
import { filteredList, notedList } from './filtered-list.ts'
import { clientCollectionOf, filteredWatch, stateOf, type FilterParts } from './filtered-watch.ts'
import { mayContainObjects, decodeObjects } from './decode-objects.ts'

/**
 * Filters the objects in answers for each component, once the inputs of its filters are known or
 * were waited for, whether an API server or the cache answers, including the answers to writes.
 * Metadata and rows of a Table pass: they have too little of an object for a filter to decide by.
 * While a filter lacks an input that it must not guess, its components get 503, as for a collection
 * that was never listed. Once inputs change so that filters decide otherwise, clients list again.
 */
export function withFilters(parts: FilterParts) {
  return (next: Handler<Exchange>): Handler<Exchange> => {
    const filtering = async (exchange: Exchange, info: ResourceRequest): Promise<Reply> => {
      const { filters } = parts
      const learning = parts.ensureInputs(exchange)
      if (learning) await learning
      const chain = filters.chainOf(exchange)
      if (isRead(info) && chain && chain.missingInputs.length > 0) throw lacking(chain)
      if (info.verb === 'watch') return filteredWatch(parts, next, exchange, info)
      if (!chain && info.verb !== 'list') return next(exchange)
      const reply = await next(exchange)
      try {
        return await filtered(reply, parts, exchange, info)
      } catch (error) {
        // No part of the answer was passed on, so that the request can be retried; by now the cache
        // may answer it.
        const isRepeatable = error instanceof BrokenAnswer && isRead(info)
        if (!isRepeatable || exchange.signal.aborted) throw error
        return filtered(await next(exchange), parts, exchange, info)
      }
    }
    return (exchange) => {
      const { info, representations } = exchange
      if (!info.isResource) return next(exchange)
      // Others may be answered in any that the client accepts: kubectl writes JSON after tables.
      const possible = info.verb === 'watch' ? representations.slice(0, 1) : representations
      const mayBeWhole = possible.some(({ projection }) => projection === 'object')
      if (possible.length > 0 && !mayBeWhole) return next(exchange)
      // A list and a watch are remembered, whether filters act or not.
      const isNoted = info.verb === 'list' || info.verb === 'watch'
      const mayAct = isNoted || parts.filters.chainOf(exchange) !== undefined
      return mayAct ? filtering(exchange, info) : next(exchange)
    }
  }
}

/**
 * Without Retry-After, as for a collection that was never listed: with it a client would retry
 * every second.
 */
const lacking = ({ missingInputs }: FilterChain): StatusError =>
  new StatusError(
    serviceUnavailable(`filters still wait for their inputs: ${missingInputs.join(', ')}`),
  )

async function filtered(
  unread: Reply,
  parts: FilterParts,
  exchange: Exchange,
  info: ResourceRequest,
): Promise<Reply> {
  const isUnread = (unread.kind === 'bytes' || unread.kind === 'body') && mayContainObjects(info)
  const acts = isUnread && parts.filters.chainOf(exchange)?.filters.length
  if (isUnread && !acts && unread.status === 200) forgetShown(parts, exchange, info)
  const reply = acts ? await decodeObjects(unread, exchange) : unread
  if (reply.kind !== 'object' && reply.kind !== 'list') return reply
  if (reply.representation.projection !== 'object') return reply
  const acting = parts.filters.chainOf(exchange)
  const objects = { edited: 0, withheld: 0 }
  const chain = acting && counted(acting, objects)
  const show = async (): Promise<Reply> => {
    if (reply.kind === 'object') return chain ? filteredObject(reply, chain, info) : reply
    if (isRead(info)) return shownList(reply, chain, parts, exchange, info)
    return chain ? filteredList(reply, chain) : reply
  }
  const shown = await show()
  const isNamed = chain?.state.acts === true || objects.edited + objects.withheld > 0
  return chain && isNamed ? filteredBy(shown, { filters: chain.filters, objects }) : shown
}

/** A list that passes unread where no filter acts leaves nothing to compare with later. */
function forgetShown({ shown }: FilterParts, exchange: Exchange, info: ResourceRequest): void {
  if (info.verb !== 'list' || info.query.get('continue')) return
  const collection = clientCollectionOf(exchange, info)
  if (collection) shown.forget(collection)
}

/** The same chain; it counts the objects of one answer that it changes. */
const counted = (chain: FilterChain, objects: NonNullable<Filtered['objects']>): FilterChain => ({
  ...chain,
  apply: (gvk, encoding, object) => {
    const shown = chain.apply(gvk, encoding, object)
    if (shown === undefined) objects.withheld += 1
    else if (shown !== object) objects.edited += 1
    return shown
  },
})

/** Remembers the state of the chain under which the list is shown, once it was. */
async function shownList(
  reply: ListReply,
  chain: FilterChain | undefined,
  { shown }: FilterParts,
  exchange: Exchange,
  info: ResourceRequest,
): Promise<Reply> {
  const collection = clientCollectionOf(exchange, info)
  if (!collection || (!chain && !shown.has(collection))) return reply
  const state = stateOf(chain)
  const list = chain ? await filteredList(reply, chain) : reply
  // Pages may have been shown under several states: a further page proves nothing about earlier
  // ones.
  if (info.query.get('continue')) return list
  return notedList(list, (version) => shown.listed(collection, state, version))
}

function filteredObject(
  reply: ObjectReply,
  chain: FilterChain,
  info: ResourceRequest,
): ObjectReply {
  const object = chain.apply(reply.gvk, reply.representation.encoding, reply.object)
  if (object === reply.object) return reply
  if (object === undefined) {
    // The writer knows the object, and would take a refusal for a failed write.
    if (info.verb !== 'get') return reply
    throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }), {
      reason: `withheld by one of the filters ${chain.filters.join(', ')}`,
    })
  }
  const { body: _unchanged, ...rest } = reply
  return { ...rest, object }
}
