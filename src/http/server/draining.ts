import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http'
import { Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
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

/**
 * The HTTP/1.1 connections of a server, so that it can stop without failing a request. Node's own
 * `close` treats a connection without a request as idle, and closes it while its first request is
 * in transit.
 */
export class HttpConnections {
  readonly #open = new Set<Socket>()
  /** Connections that close after their answers in flight; absent while there is none. */
  #ending: WeakSet<Duplex> | undefined
  #draining = false

  /** Has to be constructed before the server listens. */
  constructor(server: HttpServer) {
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
    })
    server.on('upgrade', (_request, socket) => this.#open.delete(socket as Socket))
  }

  /** To be called when a request begins. */
  began({ request: { socket }, response }: PendingRequest): void {
    if (this.#draining) this.#ending?.add(socket)
    if (this.#ending?.has(socket)) response.shouldKeepAlive = false
  }

  /** To be called when its answer is over. */
  over({ request: { socket } }: PendingRequest): void {
    // The head was sent before, without `Connection: close`.
    if (this.#ending?.has(socket) && pendingRequestsOn(socket).size === 0) socket.destroySoon()
  }

  #end(socket: Socket): void {
    this.#ending ??= new WeakSet()
    this.#ending.add(socket)
    const underWay = pendingRequestsOn(socket)
    if (underWay.size === 0) socket.destroySoon()
    for (const { response } of underWay) if (!response.headersSent) response.shouldKeepAlive = false
  }

  /**
   * Closes each current connection after its answers in flight; later connections are served as
   * usual.
   */
  retire(): void {
    for (const socket of this.#open) this.#end(socket)
  }

  /** Closes each connection after its answers in flight, or after its first answer. */
  drain(): void {
    this.#draining = true
    this.#ending ??= new WeakSet()
    for (const socket of this.#open) if (connections.has(socket)) this.#end(socket)
  }
}

/**
 * Accepts no more connections; resolves when all current ones, and `elsewhere`, have closed. The
 * caller has to bring that about.
 */
export async function closeServer(server: HttpServer, elsewhere?: Promise<void>): Promise<void> {
  // Not the HTTP server's own `close`, which would close connections before their first request.
  await new Promise<void>((resolve) => Server.prototype.close.call(server, () => resolve()))
  await elsewhere
  server.close() // it keeps a timer until its own close
}
