import type { Exchange, Handler } from '../../http/exchange/exchange.ts'

/**
 * Requests the inputs that the filters of an exchange need. `undefined`: there is nothing to wait
 * for; otherwise resolves soon, whether they are known or not.
 */
export type EnsureInputs = (exchange: Exchange) => Promise<void> | undefined

/**
 * Lets a request wait briefly for filter inputs that were never known: an earlier answer would
 * change at once.
 */
export const withFilterInputs =
  (learn: EnsureInputs) =>
  (next: Handler<Exchange>): Handler<Exchange> =>
  (exchange) => {
    const learning = learn(exchange)
    return learning ? learning.then(() => next(exchange)) : next(exchange)
  }
