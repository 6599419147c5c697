import { askingGzip, takesGzip } from '../exchange/accept-encoding.ts'
import { Chunks, sourceOf } from '../exchange/chunks.ts'
import type { BytesReply, Exchange } from '../exchange/exchange.ts'
import { isGzip, unpacked, unpackedHeaders, type OnUnpacked } from '../exchange/unpacked.ts'
import type { Forward } from './forward.ts'

export interface CompressionRules {
  /** Whether lists and watches are asked for compressed on behalf of clients that do not ask for it. */
  readonly always: () => boolean
  /** Whether the answer may be changed here, so that it cannot leave compressed as it came. */
  readonly mayChange: (exchange: Exchange) => boolean
  readonly onUnpacked: OnUnpacked
}

/**
 * Inflates answers that are not going to leave compressed: those that may be changed, here so that they weigh what they are from then on;
 * and those of clients that did not ask for compression, for links on which a byte costs more than the work. API servers compress what
 * is long, and no watch; another hub or a gateway before them may.
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

/** A part of a compressed body is not a body that can be inflated: ranges are left alone. */
const isOfCollection = ({ method, info, headers }: Exchange): boolean =>
  method === 'GET' &&
  info.isResource &&
  (info.verb === 'list' || info.verb === 'watch') &&
  headers.get('range') === undefined

/** A 204 and a 304 have no body, whatever they say of the one that there would be. */
const inflated = (reply: BytesReply, onUnpacked: OnUnpacked): BytesReply =>
  isGzip(reply.headers) && reply.status !== 204 && reply.status !== 304
    ? {
        ...reply,
        headers: unpackedHeaders(reply.headers),
        source: sourceOf(unpacked(new Chunks(reply.source), onUnpacked)),
      }
    : reply
