import { BrokenAnswer } from '../cache/recorder.ts'
import { onAbort } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import { StatusError, notFound, serviceUnavailable } from '../kube/status.ts'
import { objectKind, type ListBatch, type ListStream } from '../codec/list.ts'
import { listHead } from '../codec/render.ts'
import type { WatchEvent } from '../codec/watch.ts'
import type {
  Exchange,
  Handler,
  ListReply,
  ObjectReply,
  Reply,
  WatchReply,
} from '../exchange/exchange.ts'
import type { Chain, FilterChain } from '../filter/chain.ts'
import { judgeEvent } from '../filter/event.ts'
import type { GVK } from '../kube/gvk.ts'
import type { ApiObject } from '../kube/object.ts'
import type { Form } from '../request/form.ts'
import type { ResourceRequest } from '../request/request-info.ts'

/** How long a request waits for what its filters need to know first: right after the start it is about to come. */
const patienceMs = 5_000

/**
 * Shows each component objects as its filters leave them, whether cloud or cache answers, the objects in replies to writes included. Only
 * whole objects can be judged: metadata and tables pass as they are. While a filter would have to guess, its components get 503, as for
 * what was never listed.
 */
export function withFilters(filters: FilterChain) {
  return (next: Handler<Exchange>): Handler<Exchange> =>
    async (exchange) => {
      if (!exchange.info.isResource) return next(exchange)
      if (!(await usableChain(filters, exchange, exchange.info))) return next(exchange)
      const reply = await next(exchange)
      const chain = chainNow(filters, exchange, exchange.info)
      if (!chain) return reply
      try {
        return await filtered(reply, chain, exchange)
      } catch (error) {
        // Nothing was passed on yet, so the request can be made once more; by now the cache may answer it.
        if (!(error instanceof BrokenAnswer) || exchange.signal.aborted) throw error
        return filtered(await next(exchange), chain, exchange)
      }
    }
}

const chainNow = (
  filters: FilterChain,
  { component }: Exchange,
  { gvr, verb }: ResourceRequest,
): Chain | undefined => filters.chainFor(component, gvr, verb)

/** The chain, once all is known that its filters wait for. Throws a 503 where that is not known in time. */
async function usableChain(
  filters: FilterChain,
  exchange: Exchange,
  info: ResourceRequest,
): Promise<Chain | undefined> {
  const chain = chainNow(filters, exchange, info)
  if (!chain || chain.unknown.length === 0) return chain
  const isOver = Promise.withResolvers<void>()
  {
    using _left = onAbort(exchange.signal, isOver.resolve)
    using _late = after(patienceMs, isOver.resolve)
    using _known = filters.onChange(() => {
      if (!chainNow(filters, exchange, info)?.unknown.length) isOver.resolve()
    })
    await isOver.promise
  }
  const later = chainNow(filters, exchange, info)
  if (!later || later.unknown.length === 0) return later
  const missing = later.unknown.join(', ')
  // Without Retry-After, as for what was never listed: with one a client would repeat it every second.
  throw new StatusError(
    serviceUnavailable(`it is not known yet what filters depend on here: ${missing}`),
  )
}

/** Waits for what filters settle before they judge. Throws a 503 where they cannot. */
async function settled(
  chain: Chain,
  gvk: GVK,
  { encoding, shape }: Form,
  objects: readonly ApiObject[],
): Promise<void> {
  if (shape !== 'object') return
  try {
    await chain.before(gvk, encoding, objects)
  } catch (cause) {
    throw new StatusError(serviceUnavailable('a filter cannot say yet what may be shown'), {
      cause,
    })
  }
}

async function filtered(reply: Reply, chain: Chain, exchange: Exchange): Promise<Reply> {
  switch (reply.kind) {
    case 'object':
      return isWhole(reply.form) ? filteredObject(reply, chain, exchange) : reply
    case 'list':
      return isWhole(reply.form) ? filteredList(reply, chain) : reply
    case 'watch':
      return { ...reply, events: filteredEvents(reply, chain) }
    default:
      return reply
  }
}

const isWhole = ({ shape }: Form): boolean => shape === 'object'

async function filteredObject(
  reply: ObjectReply,
  chain: Chain,
  { info }: Exchange,
): Promise<ObjectReply> {
  await settled(chain, reply.gvk, reply.form, [reply.object])
  const object = chain.look(reply.gvk, reply.form.encoding, reply.object)
  if (object === reply.object) return reply
  if (object === undefined) {
    // Who has written an object knows it, and would take a refusal for a write that failed.
    if (!info.isResource || info.verb !== 'get') return reply
    throw new StatusError(notFound({ ...info.gvr, name: info.name ?? '' }))
  }
  const { body: _unchanged, ...rest } = reply
  return { ...rest, object }
}

async function filteredList(unfiltered: ListReply, chain: Chain): Promise<ListReply> {
  if (chain.filters.length === 0) return unfiltered
  const { asItCame: _unfiltered, ...reply } = unfiltered
  const { form, list } = reply
  const gvk = objectKind(list.gvk)
  const look = (batch: ListBatch): ListBatch => lookAt(batch, gvk, form, chain)
  const headers = reply.headers.without((name) => name === 'content-length')
  // What may have to be refused yet is not begun.
  if (form.encoding === 'json' && !chain.settles) {
    return { ...reply, headers, list: { ...streamOf(list), batches: each(list.batches, look) } }
  }
  const settle = (batch: ListBatch): Promise<void> => settled(chain, gvk, form, batch.objects)
  return { ...reply, headers, list: await staged(list, form, settle, look) }
}

/** What a batch is shown as; the same one where nothing in it changes, so that it leaves in its own bytes. */
function lookAt(batch: ListBatch, gvk: GVK, { encoding }: Form, chain: Chain): ListBatch {
  let changed = false
  const objects = batch.objects.flatMap((object) => {
    const shown = chain.look(gvk, encoding, object)
    changed ||= shown !== object
    return shown ? [shown] : []
  })
  return changed ? { objects } : batch
}

const streamOf = (list: ListStream): ListStream => ({
  gvk: list.gvk,
  head: list.head,
  batches: list.batches,
  end: () => list.end(),
})

async function* each(
  batches: AsyncIterable<ListBatch>,
  look: (batch: ListBatch) => ListBatch,
): AsyncGenerator<ListBatch> {
  for await (const batch of batches) yield look(batch)
}

/**
 * The whole list, filtered: in protobuf the length of a list stands before its items, so that it must be known before the first byte is
 * sent. Throws `BrokenAnswer` where the list breaks off.
 */
async function staged(
  list: ListStream,
  { encoding, shape }: Form,
  settle: (batch: ListBatch) => Promise<void>,
  look: (batch: ListBatch) => ListBatch,
): Promise<ListStream> {
  const batches: ListBatch[] = []
  let changed = false
  try {
    for await (const batch of list.batches) {
      await settle(batch)
      const shown = look(batch)
      changed ||= shown !== batch
      batches.push(shown)
    }
  } catch (cause) {
    throw cause instanceof StatusError ? cause : new BrokenAnswer(cause)
  }
  const end = await list.end()
  const objects = batches.flatMap((batch) => batch.objects)
  return {
    gvk: list.gvk,
    head:
      changed && encoding === 'protobuf'
        ? [listHead(encoding, shape, list.gvk, end.meta, end.extra, objects)]
        : list.head,
    batches: inTurn(batches),
    end: () => Promise.resolve(end),
  }
}

async function* inTurn(batches: readonly ListBatch[]): AsyncGenerator<ListBatch> {
  yield* batches
}

async function* filteredEvents(
  { events, form, gvk, isShared }: WatchReply,
  chain: Chain,
): AsyncGenerator<readonly WatchEvent[]> {
  const judge = isShared ? judgeOnce : judgeEvent
  for await (const group of events) {
    const kind = gvk()
    const { encoding } = form()
    await settled(chain, kind, form(), objectsOf(group))
    const shown = isWhole(form())
      ? group.flatMap((event) => judge(chain, kind, encoding, event) ?? [])
      : group
    if (shown.length > 0) yield shown
  }
}

const objectsOf = (events: readonly WatchEvent[]): readonly ApiObject[] =>
  events.flatMap((event) => ('object' in event ? [event.object] : []))

/** What chains have made of events that several watches are given; gone with the event. */
const judged = new WeakMap<WatchEvent, Map<Chain, WatchEvent | undefined>>()

/** The same as `judgeEvent`, and the same instance for all who are shown the same. */
const judgeOnce: typeof judgeEvent = (chain, gvk, encoding, event) => {
  let made = judged.get(event)
  if (!made) judged.set(event, (made = new Map()))
  if (!made.has(chain)) made.set(chain, judgeEvent(chain, gvk, encoding, event))
  return made.get(chain)
}
