import { askingGzip, takesGzip } from '../exchange/accept-encoding.ts'
import { Chunks, sourceOf } from '../exchange/chunks.ts'
import type { BytesReply, Exchange } from '../exchange/exchange.ts'
import { isGzip, unpacked, unpackedHeaders, type OnUnpacked } from '../exchange/unpacked.ts'
import type { Forward } from './forward.ts'

/**
 * Asks for lists and watches compressed on behalf of clients that do not ask for it, who get them inflated: for links on which a byte
 * costs more than the work. API servers compress long lists only, and no watch; another hub or a gateway before them may.
 */
export const compressing =
  (forward: Forward, onUnpacked: OnUnpacked): Forward =>
  async (exchange, options) => {
    if (!isOfCollection(exchange) || takesGzip(exchange.headers)) return forward(exchange, options)
    const asked = { ...exchange, headers: askingGzip(exchange.headers) }
    const reply = await forward(asked, options)
    return isGzip(reply.headers) ? inflated(reply, onUnpacked) : reply
  }

/** A part of a compressed body is not a body that can be inflated: ranges are left alone. */
const isOfCollection = ({ method, info, headers }: Exchange): boolean =>
  method === 'GET' &&
  info.isResource &&
  (info.verb === 'list' || info.verb === 'watch') &&
  headers.get('range') === undefined

const inflated = (reply: BytesReply, onUnpacked: OnUnpacked): BytesReply => ({
  ...reply,
  headers: unpackedHeaders(reply.headers),
  source: sourceOf(unpacked(new Chunks(reply.source), onUnpacked)),
})
