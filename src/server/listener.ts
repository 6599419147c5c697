import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Handler, Incoming, Peer, WireReply } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import { onAbort } from '../base/abort.ts'
import { after, every } from '../base/clock.ts'
import { listening, type Bound, type Place } from './listening.ts'
import { endWith, refuse } from './refusal.ts'
import { responseSink } from './sink.ts'

export type ListenerOptions = Place & {
  readonly handler: Handler<Incoming, WireReply>
  /** How many connections are kept open at most; further ones are closed at once. */
  readonly maxConnections: number
  /** Told of what no client can be told any more: the answer had begun, or its connection was gone. */
  readonly onBroken: (cause: unknown) => void
}

export interface Listener extends Bound {
  /**
   * Takes no more connections and lets requests under way finish for `graceMs`; what is still open then is cut.
   */
  close(graceMs: number): Promise<void>
}

/** Longer than any Go client keeps an idle connection (90 s), so that the client closes first and no request races our close. */
const idleMs = 150_000

const headBytes = 64 * 1024

/** Plain HTTP/1.1. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const server = createServer({
    maxHeaderSize: headBytes,
    keepAliveTimeout: idleMs,
    // A head arrives whole within this time; a body may take as long as it likes.
    headersTimeout: 30_000,
    requestTimeout: 0,
    connectionsCheckingInterval: 5_000,
    highWaterMark: 128 * 1024,
    // `Upgrade: h2c` and the like are offers that RFC 9110 lets a server ignore.
    shouldUpgradeCallback: (request) => isUpgrade(request),
  })
  server.maxConnections = options.maxConnections
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response, options).catch((cause: unknown) => {
      options.onBroken(cause)
      response.destroy()
    })
  }
  server.on('request', serve)
  server.on('checkContinue', (request, response) => {
    response.writeContinue()
    serve(request, response)
  })
  const tunnels = new Set<Duplex>()
  server.on('upgrade', (request, socket, head) => {
    tunnels.add(socket)
    socket.once('close', () => tunnels.delete(socket))
    answerUpgrade(request, socket, head, options).catch((cause: unknown) => {
      options.onBroken(cause)
      socket.destroy()
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // A refusal would be taken for the answer to what is under way.
    if ([...underWayOn(socket)].every(mayBeRefused)) refuse(error, socket)
    else socket.destroy()
  })
  const bound = await listening(server, options, options.onBroken)
  return { ...bound, close: (graceMs) => close(server, tunnels, graceMs) }
}

const upgradeProtocols = /^(websocket|spdy\/)/i

const isUpgrade = (request: IncomingMessage): boolean =>
  upgradeProtocols.test(request.headers.upgrade ?? '')

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { handler, onBroken }: ListenerOptions,
): Promise<void> {
  const gone = new AbortController()
  const here = { request, response }
  const underWay = underWayOn(request.socket).add(here)
  response.once('close', () => {
    underWay.delete(here)
    gone.abort(clientGone)
  })
  response.once('finish', () => skipRest(request))
  response.sendDate = false
  const reply = await handler(incoming(request, false, gone.signal))
  if (gone.signal.aborted) return
  if (reply.kind === 'upgrade') throw new Error('an upgrade was answered that nobody asked for')
  if (reply.kind === 'body') {
    response.writeHead(reply.status, [...reply.headers.raw])
    response.end(request.method === 'HEAD' ? undefined : reply.body)
    return
  }
  response.writeHead(reply.status, [...reply.headers.raw])
  const sink = responseSink(response, onBroken)
  const giveUp = reply.source(sink)
  // A watch may have nothing to say for minutes, yet its client waits for the head.
  if (!sink.started()) response.flushHeaders()
  onAbort(gone.signal, giveUp)
}

/** A request that has not been answered whole. */
interface UnderWay {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const connections = new WeakMap<Duplex, Set<UnderWay>>()

/** Requests under way on one connection: several where a client did not wait for its answers; those wait for their turn. */
function underWayOn(socket: Duplex): Set<UnderWay> {
  const known = connections.get(socket) ?? new Set()
  connections.set(socket, known)
  return known
}

/** Whether it is this request that could not be parsed, within its body, and nothing was said to it yet. */
const mayBeRefused = ({ request, response }: UnderWay): boolean =>
  !request.complete && !response.headersSent

/** Reads what nobody wanted of a body, whoever stopped reading it: the next request comes after it. */
function skipRest(request: IncomingMessage): void {
  if (request.complete) return
  request.on('pause', () => request.resume())
  request.resume()
}

async function answerUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { handler }: ListenerOptions,
): Promise<void> {
  const gone = new AbortController()
  socket.once('close', () => gone.abort(clientGone))
  socket.on('error', () => socket.destroy())
  const reply = await handler(incoming(request, true, gone.signal))
  if (gone.signal.aborted) return
  if (reply.kind === 'upgrade') {
    reply.take(socket, head)
    return
  }
  if (reply.kind === 'bytes') throw new Error('a stream of bytes cannot answer an upgrade')
  const lines = [`HTTP/1.1 ${reply.status} ${reasonPhrase(reply.status)}`]
  for (let i = 0; i < reply.headers.raw.length; i += 2) {
    lines.push(`${reply.headers.raw[i]}: ${reply.headers.raw[i + 1]}`)
  }
  lines.push('Connection: close', '', '')
  socket.write(lines.join('\r\n'), 'latin1')
  endWith(socket, reply.body)
}

const reasonPhrase = (status: number): string => (status < 400 ? 'OK' : 'Refused')

function incoming(request: IncomingMessage, upgrade: boolean, signal: AbortSignal): Incoming {
  const hasBody =
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > 0
  return {
    id: randomUUID(),
    method: request.method ?? 'GET',
    url: request.url ?? '/',
    headers: new HeaderList(request.rawHeaders),
    peer: peerOf(request.socket),
    ...(hasBody && { body: request }),
    upgrade,
    signal,
  }
}

const peers = new WeakMap<Socket, Peer>()

function peerOf(socket: Socket): Peer {
  const known = peers.get(socket)
  if (known) return known
  const peer: Peer = {
    address: socket.remoteAddress ?? '',
    port: socket.remotePort ?? 0,
    localAddress: socket.localAddress ?? '',
    localPort: socket.localPort ?? 0,
  }
  peers.set(socket, peer)
  return peer
}

/** The reason of the signal that says that a client hung up, or has its answer. */
class ClientGone extends Error {
  readonly code = 'CLIENT_GONE'
  constructor() {
    super('the client has closed its connection')
  }
}

/** One for all: every exchange ends with it, and a stack of its own would tell nothing. */
const clientGone = new ClientGone()

async function close(server: Server, tunnels: Iterable<Duplex>, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  // Connections fall idle one by one, as their answers end.
  using _idle = every(50, () => server.closeIdleConnections())
  using _cut = after(graceMs, () => {
    server.closeAllConnections()
    for (const socket of tunnels) socket.destroy()
  })
  await closed
}
