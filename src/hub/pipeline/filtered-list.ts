import { turn } from '../../base/clock.ts'
import { brokenAnswer } from '../cache/recorder.ts'
import { objectKind, type ListBatch, type ListStream } from '../../api/codec/list.ts'
import { listHead } from '../../api/codec/render.ts'
import type { ListReply } from '../../http/exchange/exchange.ts'
import type { FilterChain } from '../filter/chain.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { Representation } from '../../api/request/representation.ts'
import { serviceUnavailable, StatusError } from '../../api/kube/status.ts'

/**
 * A filtered list; the same list where no filter acts. Throws `BrokenAnswer` where it breaks off
 * before any of it is passed on, and a StatusError where a filter cannot prepare its decisions.
 */
export async function filteredList(unfiltered: ListReply, chain: FilterChain): Promise<ListReply> {
  if (chain.filters.length === 0) return unfiltered
  const { upstreamBody: _unfiltered, ...reply } = unfiltered
  const { representation, list } = reply
  const gvk = objectKind(list.gvk)
  const look = (batch: ListBatch): ListBatch => filterBatch(batch, gvk, representation, chain)
  const headers = reply.headers.without((name) => name === 'content-length')
  // A list that may still be refused must not begin.
  if (representation.encoding === 'json' && !chain.needsPreparing) {
    return { ...reply, headers, list: { ...streamOf(list), batches: each(list.batches, look) } }
  }
  const prepared = chain.needsPreparing
    ? await committed(list, (objects) => prepareFilters(chain, gvk, representation, objects))
    : streamOf(list)
  return {
    ...reply,
    headers,
    list: await staged(prepared, representation, look),
  }
}

/** A filtered batch; the same one where no object changes, so that it leaves in its own bytes. */
function filterBatch(
  batch: ListBatch,
  gvk: GVK,
  { encoding }: Representation,
  chain: FilterChain,
): ListBatch {
  let changed = false
  const objects = batch.objects.flatMap((object) => {
    const shown = chain.apply(gvk, encoding, object)
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
 * The whole list, filtered: in protobuf the length of a list comes before its items, and must be
 * known before the first byte is sent. Throws `BrokenAnswer` where the list breaks off.
 */
async function staged(
  list: ListStream,
  { encoding, projection }: Representation,
  look: (batch: ListBatch) => ListBatch,
): Promise<ListStream> {
  const batches: ListBatch[] = []
  let changed = false
  try {
    for await (const batch of list.batches) {
      const shown = look(batch)
      changed ||= shown !== batch
      batches.push(shown)
    }
  } catch (cause) {
    return brokenAnswer(cause)
  }
  const end = await list.end()
  const objects = batches.flatMap((batch) => batch.objects)
  return {
    gvk: list.gvk,
    head:
      changed && encoding === 'protobuf'
        ? [listHead(encoding, projection, list.gvk, end.meta, end.extra, objects)]
        : list.head,
    batches: inTurn(batches),
    end: () => Promise.resolve(end),
  }
}

async function* inTurn(batches: readonly ListBatch[]): AsyncGenerator<ListBatch> {
  yield* batches
}

/**
 * The list after its commit, and after the filters have prepared their decisions on all of it:
 * filters that decide in the commit have decided, and there is one wait for the disk instead of one
 * for each batch. Throws `BrokenAnswer` where the list breaks off.
 */
async function committed(
  list: ListStream,
  prepare: (objects: readonly ApiObject[]) => Promise<void>,
): Promise<ListStream> {
  const batches: ListBatch[] = []
  try {
    for await (const batch of list.batches) batches.push(batch)
  } catch (cause) {
    return brokenAnswer(cause)
  }
  await list.end()
  await prepare(batches.flatMap(({ objects }) => objects))
  return { ...streamOf(list), batches: yielding(batches) }
}

/** Lets others have their turn between batches. */
async function* yielding(batches: readonly ListBatch[]): AsyncGenerator<ListBatch> {
  for (const batch of batches) {
    yield batch
    await turn()
  }
}

/** The same list; `onListed` is called with its version before its end is released. */
export function notedList(reply: ListReply, onListed: (version: string) => void): ListReply {
  const { list, upstreamBody } = reply
  const end: ListStream['end'] = async () => {
    const ended = await list.end()
    onListed(ended.meta.resourceVersion)
    return ended
  }
  return {
    ...reply,
    list: { ...streamOf(list), end },
    ...(upstreamBody && { upstreamBody: ending(upstreamBody, end) }),
  }
}

async function* ending(
  body: AsyncGenerator<readonly Uint8Array[]>,
  end: () => Promise<unknown>,
): AsyncGenerator<readonly Uint8Array[]> {
  yield* body
  await end()
}

/** Waits until filters have prepared their decisions on objects. Throws a 503 where they cannot. */
export async function prepareFilters(
  chain: FilterChain,
  gvk: GVK,
  { encoding }: Representation,
  objects: readonly ApiObject[],
): Promise<void> {
  if (!chain.needsPreparing) return
  try {
    await chain.prepare(gvk, encoding, objects)
  } catch (cause) {
    if (cause instanceof StatusError) throw cause
    throw new StatusError(serviceUnavailable('a filter cannot decide yet which objects to show'), {
      cause,
    })
  }
}
