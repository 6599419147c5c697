import { onAbort, follow } from '../base/abort.ts'
import { after } from '../base/clock.ts'
import type { Exchange, Handler } from '../exchange/exchange.ts'
import { serviceUnavailable, StatusError, timeout } from '../kube/status.ts'

/** A watch that its server forgot to end is ended this long after its time. */
const graceMs = 15_000

/** The reasons for which a watch ends that nobody else has ended. */
const overTime = new Error('a watch was over its time')
const stopped = new Error('the hub is stopping')

/**
 * Watches end at the latest fifteen seconds after the time they asked for (of a day at most), and when `stopping` aborts: they would last
 * longer than any grace period, and their clients go on from their version with the hub that comes next. One that has not begun by
 * then is answered 504, or 503. Nothing else is timed out.
 */
export function withDeadline(stopping: AbortSignal) {
  return (next: Handler<Exchange>): Handler<Exchange> =>
    async (exchange) => {
      const { info } = exchange
      if (!info.isResource || info.verb !== 'watch') return next(exchange)
      const seconds = Number(info.query.get('timeoutSeconds'))
      const ending = new AbortController()
      const links = [
        follow(exchange.signal, ending),
        onAbort(stopping, () => ending.abort(stopped)),
        ...(seconds > 0 && seconds <= 86_400
          ? [after(seconds * 1000 + graceMs, () => ending.abort(overTime))]
          : []),
      ]
      onAbort(exchange.signal, () => links.forEach((link) => link[Symbol.dispose]()))
      try {
        return await next({ ...exchange, signal: ending.signal })
      } catch (error) {
        const { reason } = ending.signal as { reason: unknown }
        if (reason === overTime) {
          throw new StatusError(timeout('the watch did not begin within the time it asked for'))
        }
        if (reason === stopped) throw new StatusError(serviceUnavailable('the hub is stopping', 1))
        throw error
      }
    }
}
