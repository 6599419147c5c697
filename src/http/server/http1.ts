import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { now, afterUnlessClosed } from '../../base/clock.ts'
import type { OpenList } from '../../base/open-list.ts'
import { closingHead } from '../exchange/closing-head.ts'
import type { Incoming, WireReply } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import {
  answer,
  clientGone,
  WaitingClient,
  requestId,
  StreamSink,
  type ResponseWriter,
  type ListenerParts,
  type SinkOptions,
} from './answer.ts'
import type { RequestActivity } from './connection-limit.ts'
import {
  closingConnections,
  HttpConnections,
  mayBeRefused,
  pendingRequestsOn,
  type PendingRequest,
} from './draining.ts'
import { limits } from './limits.ts'
import {
  faultOf,
  pathOf,
  reasonPhrase,
  endWith,
  messageOf,
  refuse,
  respondWith,
  type Fault,
} from './message.ts'
import { peerOf } from './peer.ts'

/** Options for Node's server, with and without TLS. */
export const http1Options = (): ServerOptions => ({
  maxHeaderSize: limits.headBytes,
  keepAliveTimeout: limits.idleMs,
  headersTimeout: limits.headMs,
  requestTimeout: 0,
  connectionsCheckingInterval: 5_000,
  highWaterMark: limits.bodyBytes,
  // Most requests have no body, and nothing reads the stream of one without.
  optimizeEmptyRequests: true,
  // `faultOf` checks it, and answers like Go.
  requireHostHeader: false,
  // `Upgrade: h2c` and the like are offers, which RFC 9110 lets a server ignore. So is one with a
  // body: no client of an API server sends one, and Node reports it only after a part of its body.
  shouldUpgradeCallback: (request) => isUpgrade(request) && !hasBody(request),
})

const upgradeProtocols = /^(websocket|spdy\/)/i

const isUpgrade = (request: IncomingMessage): boolean =>
  upgradeProtocols.test(request.headers.upgrade ?? '')

interface Http1Parts extends ListenerParts {
  readonly open: HttpConnections
}

/** The connections of one protocol, for shutdown. */
export interface Drainable {
  /**
   * Current connections take no more requests and finish those in flight; later connections are
   * served.
   */
  retire(): void
  /** Takes no more requests and finishes those in flight. */
  drain(): void
  /** Closes what is still open. */
  cut(): void
}

/** Serves HTTP/1.1 requests to `server`. */
export function serveHttp1(server: Server, listener: ListenerParts): Drainable {
  const open = new HttpConnections(server)
  const parts: Http1Parts = { ...listener, open }
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (closingConnections.has(request.socket)) return ignore(request, parts)
    const fault = faultOf(request)
    if (fault) {
      // The rest of this connection is not parsed as requests.
      closingConnections.add(request.socket)
      return respondWith(fault, response)
    }
    if (offersUpgrade(request)) {
      closingConnections.add(request.socket)
      response.shouldKeepAlive = false
    }
    const own = asksForServer(request) ? { ...parts, handler: emptyOk } : parts
    answerRequest(request, response, own).catch((cause: unknown) => {
      parts.onBroken(cause)
      response.destroy()
    })
  }
  server.on('request', serve)
  server.setTimeout(parts.stalledMs, (socket: Socket) => {
    // If nothing waits to be sent, the client may be waiting for an event or an answer.
    if (pendingRequestsOn(socket).size > 0 && socket.writableLength === 0) return
    if (socket.writableLength > 0) parts.onCut('stalled')
    socket.destroy()
  })
  server.on('checkContinue', (request, response) => {
    // Without an announced body there is nothing to continue with.
    if (hasBody(request)) response.writeContinue()
    serve(request, response)
  })
  // As in Go's net/http, this answer closes the connection, and has a date and no body.
  server.on('checkExpectation', (request, response) => {
    if (closingConnections.has(request.socket)) return ignore(request, parts)
    closingConnections.add(request.socket)
    response.writeHead(417, { 'Content-Length': 0, Connection: 'close' }).end()
  })
  const tunnels = new Set<Duplex>()
  // The hub opens no tunnels for CONNECT.
  server.on('connect', (_request, socket) => {
    if (!comesTooEarly(socket, parts)) refuseNow(socket, { code: 405 })
  })
  server.on('upgrade', (request, socket, head) => {
    if (comesTooEarly(socket, parts)) return
    const fault = faultOf(request)
    if (fault) return refuseNow(socket, fault)
    tunnels.add(socket)
    const activity = parts.connections.beginRequest(request.socket)
    socket.once('close', () => tunnels.delete(socket))
    answerUpgrade(request, socket, head, parts, activity).catch((cause: unknown) => {
      parts.onBroken(cause)
      socket.destroy()
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (closingConnections.has(socket)) return
    // The client would take a refusal for the answer to a request in flight.
    if ([...pendingRequestsOn(socket)].every(mayBeRefused)) refuse(error, socket)
    else socket.destroy()
  })
  return {
    retire: () => open.retire(),
    drain: () => open.drain(),
    cut: () => {
      server.closeAllConnections()
      for (const socket of tunnels) socket.destroy()
    },
  }
}

/** `OPTIONS *` is about the server itself; Go's net/http answers it before any handler. */
const asksForServer = ({ method, url }: IncomingMessage): boolean =>
  method === 'OPTIONS' && url === '*'

const emptyOk = async (): Promise<WireReply> => ({
  kind: 'body',
  from: 'hub',
  status: 200,
  headers: new HeaderList(['Date', new Date(now()).toUTCString(), 'Content-Length', '0']),
  body: Buffer.alloc(0),
})

/**
 * Node keeps a response for an ignored request, too, until the answers before it have gone: so
 * ignored requests count as pipelined.
 */
function ignore({ socket }: IncomingMessage, { pipelined, onCut }: ListenerParts): void {
  const ignored = (ignoredOn.get(socket) ?? 0) + 1
  ignoredOn.set(socket, ignored)
  if (ignored <= pipelined || socket.destroyed) return
  onCut('pipelined')
  socket.destroy()
}

const ignoredOn = new WeakMap<Duplex, number>()

/**
 * An ignored offer makes its request the last one on the connection: Node's parser skips what
 * follows it in the same chunk, so that the next request would begin wherever the next chunk does.
 */
const offersUpgrade = ({ headers }: IncomingMessage): boolean => headers.upgrade !== undefined

function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  parts: Http1Parts,
): Promise<void> {
  const own = new Http1Answer(request, response, parts)
  const { activity } = own
  if (own.pending.size > parts.pipelined) {
    closingConnections.add(request.socket)
    parts.onCut('pipelined')
    request.socket.destroy()
    return Promise.resolve()
  }
  if (hasBody(request) || offersUpgrade(request)) {
    response.once('finish', () => discardBody(request))
  }
  return answer(incoming(request, false, own.client, activity), own, parts)
}

/**
 * The answer to one request, from when that begins until the answer is over. One object for all
 * that have to do with it: a kubelet sends many short requests.
 */
class Http1Answer implements PendingRequest, ResponseWriter, SinkOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly activity: RequestActivity
  readonly client = new WaitingClient()
  readonly #parts: Http1Parts
  /** All requests in flight on the connection. */
  readonly pending: OpenList<PendingRequest>

  constructor(request: IncomingMessage, response: ServerResponse, parts: Http1Parts) {
    this.request = request
    this.response = response
    this.#parts = parts
    this.activity = parts.connections.beginRequest(request.socket)
    this.pending = pendingRequestsOn(request.socket)
    this.pending.add(this)
    parts.open.began(this)
    response.on('close', () => this.over())
    response.sendDate = false
  }

  over(): void {
    if (this.pending.delete(this)) this.#parts.open.over(this)
    this.activity[Symbol.dispose]()
    this.client.abort(clientGone)
  }

  writeHead(status: number, headers: HeaderList, last: boolean): void {
    if (last) {
      closingConnections.add(this.request.socket)
      this.response.shouldKeepAlive = false
    }
    this.response.writeHead(status, reasonPhrase(status), headers.raw as string[])
  }

  flush(): void {
    this.response.flushHeaders()
  }

  end(body: Uint8Array): void {
    this.response.end(this.request.method === 'HEAD' ? undefined : body)
  }

  sink(): StreamSink {
    return new StreamSink(this.response, this)
  }

  trailers(raw: readonly string[]): void {
    this.response.addTrailers(pairs(raw))
  }

  breakOff(cause: Error): void {
    this.response.destroy(cause)
  }

  onBroken(cause: unknown): void {
    this.#parts.onBroken(cause)
  }
}

function pairs(raw: readonly string[]): [string, string][] {
  const result: [string, string][] = []
  for (let i = 0; i < raw.length; i += 2) result.push([raw[i] ?? '', raw[i + 1] ?? ''])
  return result
}

/**
 * Whether an upgrade arrived while another answer is in flight, or after a malformed message. An
 * upgrade is answered on the raw socket, and the client would take that for the answer in flight.
 * So the connection is closed, and the requests in flight end here, as Node reports nothing more
 * about a connection that it has handed over.
 */
function comesTooEarly(socket: Duplex, { onCut }: ListenerParts): boolean {
  if (closingConnections.has(socket)) return true
  const underWay = [...pendingRequestsOn(socket)]
  if (underWay.length === 0) return false
  onCut('pipelined')
  socket.destroy()
  for (const each of underWay) each.over()
  return true
}

/** Refuses an upgrade on a socket that Node has handed over, and closes it. */
function refuseNow(socket: Duplex, fault: Fault): void {
  socket.on('error', () => socket.destroy())
  endWith(socket, messageOf(fault))
}

/**
 * Reads and discards the rest of a body that its handler left unread: the next request follows it.
 */
function discardBody(request: IncomingMessage): void {
  if (request.complete) return
  afterUnlessClosed(request, limits.restMs, () => request.destroy())
  request.on('pause', () => request.resume())
  request.resume()
}

async function answerUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { handler }: ListenerParts,
  activity: RequestActivity,
): Promise<void> {
  const client = new WaitingClient()
  socket.once('close', () => client.abort(clientGone))
  socket.on('error', () => socket.destroy())
  const reply = await handler(incoming(request, true, client, activity))
  if (client.aborted) return
  if (reply.kind === 'upgrade') {
    reply.take(socket, head)
    return
  }
  if (reply.kind === 'bytes') throw new Error('a stream of bytes cannot answer an upgrade')
  const { status, headers } = reply
  socket.write(closingHead(status, reasonPhrase(status), headers), 'latin1')
  endWith(socket, request.method === 'HEAD' ? '' : reply.body)
  // What the client still sends is discarded, but its end is seen only after that.
  socket.resume()
}

function incoming(
  request: IncomingMessage,
  upgrade: boolean,
  client: WaitingClient,
  activity: RequestActivity,
): Incoming {
  return {
    id: requestId(),
    method: request.method ?? 'GET',
    url: pathOf(request),
    headers: new HeaderList(request.rawHeaders),
    peer: peerOf(request.socket),
    ...(hasBody(request) && { body: request }),
    upgrade,
    signal: client,
    client,
    onProven: activity.proven,
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
