import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http'
import { Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { OpenList } from '../../base/open-list.ts'

/**
 * The HTTP/1.1 connections of a server, so that it can stop without failing a request. Node's own
 * `close` treats a connection without a request as idle, and closes it while its first request is
 * in transit.
 */
export class HttpConnections {
  /** The answers in flight on each connection; `undefined` before its first request. */
  readonly #open = new Map<Duplex, OpenList<ServerResponse> | undefined>()
  /** Connections that close after their answers in flight. */
  readonly #ending = new WeakSet<Duplex>()
  #draining = false

  /** Has to be constructed before the server listens. */
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
    const underWay = known ?? new OpenList<ServerResponse>()
    if (!known) this.#open.set(socket, underWay)
    underWay.add(response)
    if (this.#draining) this.#ending.add(socket)
    if (this.#ending.has(socket)) response.shouldKeepAlive = false
    response.once('close', () => {
      underWay.delete(response)
      // The head was sent before, without `Connection: close`.
      if (this.#ending.has(socket) && underWay.size === 0) socket.destroySoon()
    })
  }

  #end(socket: Duplex, underWay = new OpenList<ServerResponse>()): void {
    this.#ending.add(socket)
    if (underWay.size === 0) (socket as Socket).destroySoon()
    for (const response of underWay) if (!response.headersSent) response.shouldKeepAlive = false
  }

  /**
   * Closes each current connection after its answers in flight; later connections are served as
   * usual.
   */
  retire(): void {
    for (const [socket, underWay] of this.#open) this.#end(socket, underWay)
  }

  /** Closes each connection after its answers in flight, or after its first answer. */
  drain(): void {
    this.#draining = true
    for (const [socket, underWay] of this.#open) {
      if (underWay !== undefined) this.#end(socket, underWay)
    }
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
