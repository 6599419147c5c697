import type { Connections } from '../../http/client/connections.ts'
import { UnusableAnswer } from '../../http/exchange/exchange.ts'

/**
 * Resolves where the upstream reports that it is ready. Rejects with `NotReady` where an API server
 * answers anything else, with `ProbeTimeout` where no answer comes in time, and with the cause
 * where the upstream cannot be reached.
 */
export type Probe = (origin: string, withinMs: number) => Promise<void>

/** An API server answered a probe, but not with 200. */
export class NotReady extends Error {
  readonly code = 'NOT_READY'
}

/**
 * An API server answered 401 to a probe: it does not accept the hub's own credentials; or answered,
 * and the hub has none yet.
 */
export class ProbeRefused extends NotReady {}

/** A probe had no answer in time. */
export class ProbeTimeout extends Error {
  readonly code = 'PROBE_TIMEOUT'
}

/**
 * Reads /readyz and then /livez, on a fresh connection. 200 is ready; any other answer shows an API
 * server that is not ready, except 502 to 504: those come from a gateway that reaches none. Some
 * builds leave etcd out of /readyz, and answer nothing that is consistent where it is gone: /livez
 * tells that. Another answer to it than that it fails does not count, as of a gateway.
 */
export const readyzProbe =
  (connections: Connections): Probe =>
  async (origin, withinMs) => {
    const statuses = connections.probe(origin, ['/readyz', '/livez'], withinMs)
    const [ready, live] = await statuses.catch((cause: unknown) => {
      throw timeouts.has((cause as NodeJS.ErrnoException).code ?? '')
        ? new ProbeTimeout(
            `${origin} did not answer a probe within ${withinMs / 1000} s: where the link is slow, give more with --heartbeat-timeout-seconds`,
            { cause },
          )
        : cause
    })
    const status = Number(ready)
    if (connections.credentials.awaited && status < 500)
      throw new ProbeRefused(
        `${origin} is not shown the hub's credentials, which it has yet to obtain`,
      )
    if (live === 500 || live === 'late')
      throw new NotReady(`${origin} is ready (/readyz), but not live (/livez): ${live}`)
    if (status === 200) return
    if (status === 401) {
      throw new ProbeRefused(`${origin} does not accept the hub's credentials (401)`)
    }
    const message = `${origin} is not ready: ${status}`
    throw status >= 502 && status <= 504 ? new UnusableAnswer(message) : new NotReady(message)
  }

const timeouts = new Set([
  'ERR_NO_ANSWER',
  'CONNECT_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'ETIMEDOUT',
])
