import { ReplayableBody } from '../cache/replayable-body.ts'
import { watchDecoder } from '../../api/codec/watch-decoder.ts'
import type { WatchEvent } from '../../api/codec/watch.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import type { BytesReply, WatchReply } from '../../http/exchange/exchange.ts'
import { isGzip } from '../../http/exchange/unpacked.ts'
import { encodingOf } from '../../api/kube/media-type.ts'
import type { Representation } from '../../api/request/representation.ts'

/**
 * Decodes the events of a watch that was not recorded, of whole objects only; returns any other
 * answer unchanged. Its events lack the previous states, and its collection has no snapshot. As a
 * recorded watch it ends cleanly where the upstream stream breaks.
 */
export function decodeWatch(
  reply: BytesReply,
  representation: Representation,
): WatchReply | BytesReply {
  const { status, headers } = reply
  const isReadable = headers.get('content-encoding') === undefined || isGzip(headers)
  const isOfForm = encodingOf(headers.get('content-type')) === representation.encoding
  if (status !== 200 || !isReadable || !isOfForm || representation.projection !== 'object')
    return reply
  const replayable = new ReplayableBody(reply, () => undefined)
  replayable.stopKeeping()
  const cutter = watchDecoder(representation.encoding, representation.projection)
  const events = async function* (): AsyncGenerator<readonly WatchEvent[]> {
    try {
      for await (const group of replayable.chunks) {
        const cut = group.flatMap((chunk) => cutter.push(chunk))
        if (cut.length > 0) yield cut
      }
    } catch (error) {
      if (!(error instanceof BrokenStream)) throw error
    }
  }
  const { from, explanation } = reply
  return {
    kind: 'watch',
    status,
    headers,
    from,
    ...(explanation && { explanation }),
    representation: () => representation,
    gvk: () => cutter.gvk,
    events: events(),
  }
}
