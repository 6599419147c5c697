import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { after } from '../base/clock.ts'
import type { Incoming } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import { answer, clientGone, requestId, type Outlet, type Served } from './answer.ts'
import type { Business } from './crowd.ts'
import { HttpConnections } from './draining.ts'
import { limits } from './limits.ts'
import { faultOf, pathOf, type Fault } from './message.ts'
import { peerOf } from './peer.ts'
import { reasonPhrase } from './phrase.ts'
import { endWith, messageOf, refuse, respondWith } from './refusal.ts'
import { streamSink } from './sink.ts'
import { mayBeRefused, refused, underWayOn } from './under-way.ts'

/** How Node's own server is to be made, with TLS or without. */
export const http1Options: ServerOptions = {
  maxHeaderSize: limits.headBytes,
  keepAliveTimeout: limits.idleMs,
  headersTimeout: limits.headMs,
  requestTimeout: 0,
  connectionsCheckingInterval: 5_000,
  highWaterMark: limits.answerBytes,
  // Said by `faultOf`, in more words.
  requireHostHeader: false,
  // `Upgrade: h2c` and the like are offers that RFC 9110 lets a server ignore.
  shouldUpgradeCallback: (request) => isUpgrade(request),
}

const upgradeProtocols = /^(websocket|spdy\/)/i

const isUpgrade = (request: IncomingMessage): boolean =>
  upgradeProtocols.test(request.headers.upgrade ?? '')

/** The connections of one protocol, and how they come to their end. */
export interface Closing {
  /** Those there are take no more requests and let those under way finish; whoever comes from now on is served. */
  retire(): void
  /** Takes no more requests and lets those under way finish. */
  drain(): void
  /** Ends what is still open. */
  cut(): void
}

/** Lets `service` answer what comes to `server` as HTTP/1.1. */
export function serveHttp1(server: Server, service: Served): Closing {
  const open = new HttpConnections(server)
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    // What follows a fault on its connection is nobody's request.
    if (refused.has(request.socket)) return
    const fault = faultOf(request)
    if (fault) {
      refused.add(request.socket)
      return respondWith(fault, response)
    }
    if (asksForServer(request)) return void response.writeHead(200, { 'Content-Length': 0 }).end()
    answerRequest(request, response, service).catch((cause: unknown) => {
      service.onBroken(cause)
      response.destroy()
    })
  }
  server.on('request', serve)
  server.setTimeout(service.stalledMs, (socket: Socket) => {
    // One that has nothing to take may be waiting for an event, or for an answer.
    if (underWayOn(socket).size > 0 && socket.writableLength === 0) return
    if (socket.writableLength > 0) service.onCut('stalled')
    socket.destroy()
  })
  server.on('checkContinue', (request, response) => {
    // There is nothing to go on with where no body is announced.
    if (hasBody(request)) response.writeContinue()
    serve(request, response)
  })
  const tunnels = new Set<Duplex>()
  // No tunnel to anywhere is made here, with nobody's credentials.
  server.on('connect', (_request, socket) => {
    if (!comesTooEarly(socket, service)) refuseNow(socket, { code: 405 })
  })
  server.on('upgrade', (request, socket, head) => {
    if (comesTooEarly(socket, service)) return
    const fault = faultOf(request)
    if (fault) return refuseNow(socket, fault)
    tunnels.add(socket)
    const business = service.crowd.serving(request.socket)
    socket.once('close', () => tunnels.delete(socket))
    answerUpgrade(request, socket, head, service, business).catch((cause: unknown) => {
      service.onBroken(cause)
      socket.destroy()
    })
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (refused.has(socket)) return
    // A refusal would be taken for the answer to what is under way.
    if ([...underWayOn(socket)].every(mayBeRefused)) refuse(error, socket)
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

/** `OPTIONS *` asks what the server itself can do, and Go's answers it before it looks at anything else. */
const asksForServer = ({ method, url }: IncomingMessage): boolean =>
  method === 'OPTIONS' && url === '*'

function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  service: Served,
): Promise<void> {
  const gone = new AbortController()
  const serving = service.crowd.serving(request.socket)
  const end = (): void => {
    underWay.delete(here)
    serving[Symbol.dispose]()
    gone.abort(clientGone)
  }
  const here = { request, response, end }
  const underWay = underWayOn(request.socket).add(here)
  response.once('close', end)
  if (underWay.size > limits.pipelined) {
    service.onCut('pipelined')
    request.socket.destroy()
    return Promise.resolve()
  }
  response.once('finish', () => skipRest(request))
  response.sendDate = false
  const outlet = outletOf(request, response, service.onBroken)
  return answer(incoming(request, false, gone.signal), outlet, service, serving)
}

function outletOf(
  request: IncomingMessage,
  response: ServerResponse,
  onBroken: (cause: unknown) => void,
): Outlet {
  return {
    head: (status, headers) =>
      void response.writeHead(status, reasonPhrase(status), [...headers.raw]),
    flush: () => response.flushHeaders(),
    end: (body) => void response.end(request.method === 'HEAD' ? undefined : body),
    sink: streamSink(response, {
      trailers: (raw) => response.addTrailers(pairs(raw)),
      breakOff: (cause) => void response.destroy(cause),
      onBroken,
    }),
  }
}

function pairs(raw: readonly string[]): [string, string][] {
  const result: [string, string][] = []
  for (let i = 0; i < raw.length; i += 2) result.push([raw[i] ?? '', raw[i + 1] ?? ''])
  return result
}

/**
 * Whether a request for another protocol came ahead of an answer, or behind a fault. It is answered on the socket itself, which would be taken
 * for the answer to what is under way; that ends with its connection, of which Node tells nobody once it has let go of it.
 */
function comesTooEarly(socket: Duplex, { onCut }: Served): boolean {
  if (refused.has(socket)) return true
  const underWay = [...underWayOn(socket)]
  if (underWay.length === 0) return false
  onCut('pipelined')
  socket.destroy()
  for (const each of underWay) each.end()
  return true
}

/** The last word on a connection that Node has let go of. */
function refuseNow(socket: Duplex, fault: Fault): void {
  socket.on('error', () => socket.destroy())
  endWith(socket, messageOf(fault))
}

/** Reads what nobody wanted of a body, whoever stopped reading it: the next request comes after it. */
function skipRest(request: IncomingMessage): void {
  if (request.complete) return
  const patience = after(limits.restMs, () => request.destroy())
  request.once('close', () => patience[Symbol.dispose]())
  request.on('pause', () => request.resume())
  request.resume()
}

async function answerUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { handler }: Served,
  business: Business,
): Promise<void> {
  const gone = new AbortController()
  socket.once('close', () => gone.abort(clientGone))
  socket.on('error', () => socket.destroy())
  const reply = await handler(incoming(request, true, gone.signal))
  if (gone.signal.aborted) return
  if (reply.kind === 'upgrade') {
    business.lasts()
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
  endWith(socket, request.method === 'HEAD' ? '' : reply.body)
  // What its client still sends is for nobody, but its end is seen only behind that.
  socket.resume()
}

function incoming(request: IncomingMessage, upgrade: boolean, signal: AbortSignal): Incoming {
  return {
    id: requestId(),
    method: request.method ?? 'GET',
    url: pathOf(request),
    headers: new HeaderList(request.rawHeaders),
    peer: peerOf(request.socket),
    ...(hasBody(request) && { body: request }),
    upgrade,
    signal,
  }
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
