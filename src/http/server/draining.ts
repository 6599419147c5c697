import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http'
import { Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'

/**
 * The HTTP/1.1 connections of a server, so that it can stop without failing a request. Node's own
 * `close` takes a connection without a request yet for idle, and closes it while its first request
 * is on the way.
 */
export class HttpConnections {
  /** Answers under way on each connection; `undefined` before its first request. */
  readonly #open = new Map<Duplex, Set<ServerResponse> | undefined>()
  /** Those that end after the answers under way on them. */
  readonly #ending = new WeakSet<Duplex>()
  #draining = false

  /** To be called before the server listens. */
  constructor(server: HttpServer) {
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#open.set(socket, undefined)
      socket.once('close', () => this.#open.delete(socket))
    })
    server.on('upgrade', (_request, socket) => this.#open.delete(socket))
    for (const event of ['request', 'checkContinue'] as const)
      server.prependListener(event, (request, response) => this.#onRequest(request, response))
  }

  #onRequest({ socket }: IncomingMessage, response: ServerResponse): void {
    const known = this.#open.get(socket)
    const underWay = known ?? new Set()
    if (!known) this.#open.set(socket, underWay)
    underWay.add(response)
    if (this.#draining) this.#ending.add(socket)
    if (this.#ending.has(socket)) response.shouldKeepAlive = false
    response.once('close', () => {
      underWay.delete(response)
      // The head was sent before the end was decided, and promised that the connection stays open.
      if (this.#ending.has(socket) && underWay.size === 0) socket.destroySoon()
    })
  }

  #end(socket: Duplex, underWay: ReadonlySet<ServerResponse> = new Set()): void {
    this.#ending.add(socket)
    if (underWay.size === 0) (socket as Socket).destroySoon()
    for (const response of underWay) if (!response.headersSent) response.shouldKeepAlive = false
  }

  /**
   * Ends each present connection after the answers under way on it; later connections are served as
   * usual.
   */
  retire(): void {
    for (const [socket, underWay] of this.#open) this.#end(socket, underWay)
  }

  /** Ends each connection after the answers under way on it, or after its first one. */
  drain(): void {
    this.#draining = true
    for (const [socket, underWay] of this.#open) {
      if (underWay !== undefined) this.#end(socket, underWay)
    }
  }
}

/**
 * Takes no more connections; resolves when all present ones have closed, which is for others to
 * bring about, and so have those that came in elsewhere.
 */
export async function closeServer(server: HttpServer, elsewhere?: Promise<void>): Promise<void> {
  // Not the HTTP server's own `close`, which would close those that have not asked yet.
  await new Promise<void>((resolve) => Server.prototype.close.call(server, () => resolve()))
  await elsewhere
  server.close() // it keeps a timer until it is told itself
}
