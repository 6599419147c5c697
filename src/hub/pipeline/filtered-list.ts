import { brokenAnswer } from '../cache/recorder.ts'
import { objectKind, type ListBatch, type ListStream } from '../../api/codec/list.ts'
import { listHead } from '../../api/codec/render.ts'
import type { ListReply } from '../../http/exchange/exchange.ts'
import { inTurn } from '../answers/replies.ts'
import type { FilterChain } from '../filter/chain.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Representation } from '../../api/request/representation.ts'

/**
 * A filtered list; the same list where no filter acts. Throws `BrokenAnswer` where it breaks off
 * before any of it is passed on.
 */
export async function filteredList(reply: ListReply, chain: FilterChain): Promise<ListReply> {
  if (chain.filters.length === 0) return reply
  const { representation, list } = reply
  const gvk = objectKind(list.gvk)
  const isInTurn = representation.encoding === 'json' || chain.keepsLengths
  const look = (batch: ListBatch): ListBatch => filterBatch(batch, gvk, representation, chain)
  const headers = reply.headers.without((name) => name === 'content-length')
  const filtered = isInTurn
    ? { ...streamOf(list), batches: each(list.batches, look) }
    : await whole(list, representation, look)
  return { ...reply, headers, list: filtered }
}

/** A filtered batch; the same one where no object changes, so that it leaves in its own bytes. */
function filterBatch(
  batch: ListBatch,
  gvk: GVK,
  { encoding }: Representation,
  chain: FilterChain,
): ListBatch {
  const shown = batch.objects.map((object) => chain.apply(gvk, encoding, object))
  if (shown.every((each, at) => each === batch.objects[at])) return batch
  return { objects: shown.filter((each) => each !== undefined) }
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
async function whole(
  list: ListStream,
  { encoding }: Representation,
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
        ? [listHead(encoding, list.gvk, end.meta, end.extra, objects)]
        : list.head,
    batches: inTurn(batches),
    end: () => Promise.resolve(end),
  }
}

/** The same list; `onListed` is called with its version before its end is released. */
export function notedList(reply: ListReply, onListed: (version: string) => void): ListReply {
  const { list } = reply
  const end: ListStream['end'] = async () => {
    const ended = await list.end()
    onListed(ended.meta.resourceVersion)
    return ended
  }
  return { ...reply, list: { ...streamOf(list), end } }
}
