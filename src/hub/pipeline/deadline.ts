import { onAbort, follow } from '../../base/abort.ts'
import { after } from '../../base/clock.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { serviceUnavailable, StatusError, timeout } from '../../api/kube/status.ts'

/** A watch that its server does not end in time is ended so much later. */
const graceMs = 15_000

/**
 * For a caller that was known for an outage which has ended; the next one may have begun. Not 401,
 * which the kubelet of an offline node would take for an API server's answer: the hub authenticates
 * its next request again.
 */
export const noLongerKnown = new StatusError(
  serviceUnavailable('the outage has ended for which the caller was known: try again', 1),
)

const overTime = new StatusError(timeout('the watch did not begin within its timeout'))
const stopped = new StatusError(serviceUnavailable('the hub is stopping', 1))

/**
 * Ends a watch fifteen seconds after the timeout that it requested, unless that is more than a day,
 * or when `stopping` aborts: a watch outlasts any grace period, and its client continues from its
 * version with the next hub. It also ends when its caller is no longer known, so that nothing which
 * comes from an API server then is given to that caller. A watch that has not begun by then is
 * answered 504 after its timeout, 503 when the hub stops or its caller is no longer known.
 */
export const withDeadline =
  (stopping: AbortSignal) =>
  (next: Handler<Exchange>): Handler<Exchange> =>
  async (exchange) => {
    const { info, knownUntil } = exchange
    const seconds = Number(info.query.get('timeoutSeconds'))
    const ending = new AbortController()
    const links = [
      follow(exchange.signal, ending),
      onAbort(stopping, () => ending.abort(stopped)),
      ...(knownUntil ? [onAbort(knownUntil, () => ending.abort(noLongerKnown))] : []),
      ...(seconds > 0 && seconds <= 86_400
        ? [after(seconds * 1000 + graceMs, () => ending.abort(overTime))]
        : []),
    ]
    onAbort(exchange.signal, () => links.forEach((link) => link[Symbol.dispose]()))
    try {
      return await next({ ...exchange, signal: ending.signal })
    } catch (error) {
      const { reason } = ending.signal as { reason: unknown }
      throw reason instanceof StatusError ? reason : error
    }
  }
