import { withGzipOnly, acceptsGzip } from '../../http/exchange/headers.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { inflated, type OnUnpacked } from '../../http/exchange/unpacked.ts'
import type { Forward } from './forward.ts'

interface CompressionRules {
  /** Whether the hub requests lists and watches compressed for clients that do not. */
  readonly always: () => boolean
  /** Whether the hub may change the answer, so that it cannot leave in its own bytes. */
  readonly mayChange: (exchange: Exchange) => boolean
  readonly onUnpacked: OnUnpacked
}

/**
 * The same forwarder; it inflates answers that cannot leave compressed. These are, first, answers
 * that a filter may change: inflated here, they count with their real size against the limits of
 * the layers above. Second, with `always`, answers to clients that do not accept compression. API
 * servers compress long answers and no watch; a gateway or another hub before them may compress
 * watches as well.
 */
export const withCompression =
  (forward: Forward, { always, mayChange, onUnpacked }: CompressionRules): Forward =>
  (exchange, options) => {
    if (acceptsGzip(exchange.headers)) {
      if (exchange.method !== 'GET' || !mayChange(exchange)) return forward(exchange, options)
      return forward(exchange, options).then((reply) =>
        reply.status === 200 ? inflated(reply, exchange, onUnpacked) : reply,
      )
    }
    if (!always() || !isOfCollection(exchange)) return forward(exchange, options)
    const compressed = { ...exchange, headers: withGzipOnly(exchange.headers) }
    return forward(compressed, options).then((reply) => inflated(reply, exchange, onUnpacked))
  }

/** Not a request for a range: part of a compressed body cannot be inflated. */
const isOfCollection = ({ method, info, headers }: Exchange): boolean =>
  method === 'GET' &&
  info.isResource &&
  (info.verb === 'list' || info.verb === 'watch') &&
  headers.get('range') === undefined
