import { askingGzip, takesGzip } from '../../http/exchange/accept-encoding.ts'
import { Chunks, sourceOf } from '../../http/exchange/chunks.ts'
import type { BytesReply, Exchange } from '../../http/exchange/exchange.ts'
import { isGzip, unpacked, unpackedHeaders, type OnUnpacked } from '../../http/exchange/unpacked.ts'
import type { Forward } from './forward.ts'

export interface CompressionRules {
  /**
   * Whether lists and watches are asked for compressed on behalf of clients that do not ask for it.
   */
  readonly always: () => boolean
  /** Whether the answer may be changed here, so that it cannot leave compressed as it came. */
  readonly mayChange: (exchange: Exchange) => boolean
  readonly onUnpacked: OnUnpacked
}

/**
 * The same forwarder; it inflates answers that cannot leave compressed. Those are, first, answers
 * that a filter may change: inflated here, they count with their real size against the limits
 * above. Second, with `always`, answers to clients that did not ask for compression. API servers
 * compress long answers and no watch; a gateway or another hub before them may compress watches,
 * too.
 */
export const compressing =
  (forward: Forward, { always, mayChange, onUnpacked }: CompressionRules): Forward =>
  async (exchange, options) => {
    if (takesGzip(exchange.headers)) {
      const reply = await forward(exchange, options)
      const mayLeaveOtherwise =
        exchange.method === 'GET' && reply.status === 200 && mayChange(exchange)
      return mayLeaveOtherwise ? inflated(reply, onUnpacked) : reply
    }
    if (!always() || !isOfCollection(exchange)) return forward(exchange, options)
    const asked = { ...exchange, headers: askingGzip(exchange.headers) }
    return inflated(await forward(asked, options), onUnpacked)
  }

/** Requests for a range are left alone: a part of a compressed body cannot be inflated. */
const isOfCollection = ({ method, info, headers }: Exchange): boolean =>
  method === 'GET' &&
  info.isResource &&
  (info.verb === 'list' || info.verb === 'watch') &&
  headers.get('range') === undefined

/** A 204 and a 304 have no body, even if their headers name an encoding. */
const inflated = (reply: BytesReply, onUnpacked: OnUnpacked): BytesReply =>
  isGzip(reply.headers) && reply.status !== 204 && reply.status !== 304
    ? {
        ...reply,
        headers: unpackedHeaders(reply.headers),
        source: sourceOf(unpacked(new Chunks(reply.source), onUnpacked)),
      }
    : reply
