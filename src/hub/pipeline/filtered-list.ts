import { turn } from '../../base/clock.ts'
import { brokenAnswer } from '../cache/recorder.ts'
import { objectKind, type ListBatch, type ListStream } from '../../api/codec/list.ts'
import { listHead } from '../../api/codec/render.ts'
import type { ListReply } from '../../http/exchange/exchange.ts'
import type { FilterChain } from '../filter/chain.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Representation } from '../../api/request/representation.ts'
import { prepareFilters } from './prepare-filters.ts'

/**
 * A list as its filters leave it; the same where they have nothing to do. Throws `BrokenAnswer`
 * where it breaks off before anything of it is passed on, and a StatusError where a filter cannot
 * settle what it has to.
 */
export async function filteredList(unfiltered: ListReply, chain: FilterChain): Promise<ListReply> {
  if (chain.filters.length === 0) return unfiltered
  const { upstreamBody: _unfiltered, ...reply } = unfiltered
  const { representation, list } = reply
  const gvk = objectKind(list.gvk)
  const look = (batch: ListBatch): ListBatch => lookAt(batch, gvk, representation, chain)
  const headers = reply.headers.without((name) => name === 'content-length')
  // What may have to be refused yet is not begun.
  if (representation.encoding === 'json' && !chain.needsPreparing) {
    return { ...reply, headers, list: { ...streamOf(list), batches: each(list.batches, look) } }
  }
  const settle = (batch: ListBatch): Promise<void> =>
    prepareFilters(chain, gvk, representation, batch.objects)
  const batches = chain.needsPreparing ? onceSettled(list.batches, settle) : list.batches
  return {
    ...reply,
    headers,
    list: await staged({ ...streamOf(list), batches }, representation, look),
  }
}

/**
 * What a batch is shown as; the same one where nothing in it changes, so that it leaves in its own
 * bytes.
 */
function lookAt(
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
 * The whole list, filtered: in protobuf the length of a list stands before its items, so that it
 * must be known before the first byte is sent. Throws `BrokenAnswer` where the list breaks off.
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
 * All batches, once what is to be settled of each is: a disk is waited for once, and not at every
 * batch.
 */
async function* onceSettled(
  batches: AsyncIterable<ListBatch>,
  settle: (batch: ListBatch) => Promise<void>,
): AsyncGenerator<ListBatch> {
  const waiting: ListBatch[] = []
  const settling: Promise<void>[] = []
  let refused = false
  for await (const batch of batches) {
    const isSettled = settle(batch)
    isSettled.catch(() => (refused = true))
    settling.push(isSettled)
    waiting.push(batch)
    if (refused) break
  }
  await Promise.all(settling)
  for (let batch = waiting.shift(); batch; batch = waiting.shift()) {
    yield batch
    await turn()
  }
}

/** The same list; `onListed` is told its version before its end is given out. */
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
