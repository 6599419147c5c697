import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { OpenList } from '../../base/open-list.ts'

/** A request without a complete answer. */
export interface PendingRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** To be called when its client has disconnected, or has its answer. */
  over(): void
}

/**
 * Connections that close after the answer in flight: what follows it is not parsed as a request.
 */
export const closingConnections = new WeakSet<Duplex>()

const connections = new WeakMap<Duplex, OpenList<PendingRequest>>()

/**
 * The requests in flight on one connection: several where a client pipelines, which are answered in
 * order.
 */
export function pendingRequestsOn(socket: Duplex): OpenList<PendingRequest> {
  const known = connections.get(socket)
  if (known) return known
  const none = new OpenList<PendingRequest>()
  connections.set(socket, none)
  return none
}

/**
 * Whether a parse error is in this request's body, and its answer has not begun and may have a
 * body.
 */
export const mayBeRefused = ({ request, response }: PendingRequest): boolean =>
  !request.complete && !response.headersSent && request.method !== 'HEAD'
