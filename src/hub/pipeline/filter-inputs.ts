import type { Exchange, Handler } from '../../http/exchange/exchange.ts'

/**
 * Sees to it that what the filters of an exchange need to know is asked for. `undefined`: there is
 * nothing to wait for; what it returns resolves soon, known or not.
 */
export type EnsureInputs = (exchange: Exchange) => Promise<void> | undefined

/**
 * Lets a request wait, for a moment, for what its filters have never known: what it would be shown
 * before would be changed at once.
 */
export const withFilterInputs =
  (learn: EnsureInputs) =>
  (next: Handler<Exchange>): Handler<Exchange> =>
  (exchange) => {
    const learning = learn(exchange)
    return learning ? learning.then(() => next(exchange)) : next(exchange)
  }
