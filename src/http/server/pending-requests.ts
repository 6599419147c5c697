import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A request that has not been answered whole. */
export interface PendingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Its client has gone, or has its answer. */
  readonly end: () => void
}

/** Connections that close with the answer under way: what comes behind it is nobody’s request. */
export const closingConnections = new WeakSet<Duplex>()

const connections = new WeakMap<Duplex, Set<PendingRequest>>()

/**
 * The requests under way on one connection. There are several where a client pipelines; they are
 * answered in turn.
 */
export function pendingRequestsOn(socket: Duplex): Set<PendingRequest> {
  const known = connections.get(socket)
  if (known) return known
  const none = new Set<PendingRequest>()
  connections.set(socket, none)
  return none
}

/**
 * Whether a parse error lies in this request's body, and its answer has not begun and may have a
 * body of its own.
 */
export const mayBeRefused = ({ request, response }: PendingRequest): boolean =>
  !request.complete && !response.headersSent && request.method !== 'HEAD'
