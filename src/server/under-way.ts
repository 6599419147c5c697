import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A request that has not been answered whole. */
export interface UnderWay {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Its client has gone, or has its answer. */
  readonly end: () => void
}

/** Connections that close when the refusal has gone out that was the last answer on them. */
export const refused = new WeakSet<Duplex>()

const connections = new WeakMap<Duplex, Set<UnderWay>>()

/** Requests under way on one connection: several where a client did not wait for its answers; those wait for their turn. */
export function underWayOn(socket: Duplex): Set<UnderWay> {
  const known = connections.get(socket) ?? new Set()
  connections.set(socket, known)
  return known
}

/** Whether it is this request that could not be parsed, within its body, and nothing was said to it yet. */
export const mayBeRefused = ({ request, response }: UnderWay): boolean =>
  !request.complete && !response.headersSent
