import type { Connections } from '../client/connections.ts'
import { NotReady, NoWord, type Probe } from './upstream.ts'

/**
 * Ready is what an API server says it is, over a connection made to hear it. Whatever else it says, it is there; but 502 to 504 is what
 * gateways say who reach nobody.
 */
export const readiness =
  (connections: Connections): Probe =>
  async (origin, withinMs) => {
    const status = await connections.ask(origin, '/readyz', withinMs).catch((cause: unknown) => {
      const { code } = cause as NodeJS.ErrnoException
      throw code !== undefined && timeouts.has(code)
        ? new NoWord(`${origin} did not answer a probe in time`, { cause })
        : cause
    })
    if (status === 200) return
    const message = `${origin} is not ready: ${status}`
    throw status >= 502 && status <= 504 ? new Error(message) : new NotReady(message)
  }

const timeouts = new Set(['ERR_NO_ANSWER', 'UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'])
