import { after } from '../../base/clock.ts'
import { UnusableAnswer } from './exchange.ts'

/**
 * Bounds a request of the hub's own: `signal` aborts after `ms`, and when this is disposed of, so
 * that the unread rest of the answer is given up. The reason is an `UnusableAnswer`.
 */
export function answerDeadline(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const timer = after(ms, () => controller.abort(new UnusableAnswer('no answer in time')))
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      timer[Symbol.dispose]()
      controller.abort(new UnusableAnswer('the rest of the answer is not needed'))
    },
  }
}
