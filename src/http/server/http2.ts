import {
  constants,
  performServerHandshake,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { elapsed, every, afterUnlessClosed, turn } from '../../base/clock.ts'
import { releaseSession } from '../../base/http2-session.ts'
import { OpenList } from '../../base/open-list.ts'
import type { Incoming, Peer } from '../exchange/exchange.ts'
import { endToEnd, HeaderList } from '../exchange/headers.ts'
import { badRequest } from '../../api/kube/status.ts'
import {
  answer,
  clientGone,
  WaitingClient,
  requestId,
  StreamSink,
  type ResponseWriter,
  type ListenerParts,
  type SinkCallbacks,
} from './answer.ts'
import type { RequestActivity } from './connection-limit.ts'
import type { Drainable } from './http1.ts'
import { limits } from './limits.ts'
import { peerOf } from './peer.ts'

/** A stream's connection and the head of its request. */
interface StreamHead {
  readonly session: Http2Session
  readonly socket: TLSSocket
  readonly peer: Peer
  readonly headers: IncomingHttpHeaders
  readonly flags: number
  /** Name and value pairs. */
  readonly fields: readonly string[]
}

/** A stream's connection and callbacks. */
interface StreamParts {
  readonly peer: Peer
  readonly hasBody: boolean
  readonly activity: RequestActivity
  /** Has to be called when the client has taken a part of the answer. */
  readonly onTaken: () => void
  /** Takes no more streams on this connection. */
  readonly retire: () => void
}

/** The slowest client that counts as reading, in bytes per second: clients are on this host. */
const slowestBytesPerSecond = 128 * 1024

/** An answer in flight. */
interface TrackedAnswer {
  readonly stream: ServerHttp2Stream
  /** Whether the client has taken something since the last check. */
  taken: boolean
  /** When it began, last had nothing waiting, or had made progress. */
  since: number
}

interface OpenSession {
  readonly socket: TLSSocket
  /** Streams in flight. */
  open: number
  idleSince: number
}

/**
 * Serves HTTP/2 on the connections that it gets. Cuts answers that stall because the client takes
 * nothing, each by itself: a client that answers pings, or reads one stream, may have abandoned
 * another. Over HTTP/1.1 the timeout of the connection does that, unless the client goes on
 * sending.
 */
export class Http2Connections implements Drainable, Disposable {
  readonly #parts: ListenerParts
  readonly #sessions = new Map<Http2Session, OpenSession>()
  readonly #answers = new OpenList<TrackedAnswer>()
  readonly #timer: Disposable
  #draining = false

  constructor(parts: ListenerParts) {
    this.#parts = parts
    this.#timer = every(parts.stalledMs / limits.checksPerTimeout, () => this.#check())
  }

  /** Serves a connection whose client chose HTTP/2 in its handshake. */
  serve(socket: TLSSocket): void {
    const peer = peerOf(socket)
    const { connections, onCut } = this.#parts
    const showsCertificate = (peer.tls?.certificate ?? peer.tls?.outOfDate) !== undefined
    const mostStreams = showsCertificate ? limits.streams : limits.unprovenStreams
    const session = performServerHandshake(socket, {
      settings: {
        maxConcurrentStreams: mostStreams,
        maxHeaderListSize: limits.headBytes,
        initialWindowSize: limits.bodyBytes,
        enablePush: false,
      },
      maxSessionMemory: limits.sessionMegabytes,
      streamResetBurst: showsCertificate ? limits.resets : limits.unprovenResets,
      streamResetRate: limits.resetsPerSecond,
      // The default of Node's HTTP/1.1; the size of a head is bounded besides.
      maxHeaderListPairs: 2_000,
      // Repeated fields of an API server pass repeated.
      strictSingleValueFields: false,
    } as Parameters<typeof performServerHandshake>[1])
    const state: OpenSession = { socket, open: 0, idleSince: elapsed() }
    this.#sessions.set(session, state)
    connections.watchProof(socket, () => {
      if (!session.closed) session.settings({ maxConcurrentStreams: limits.streams })
    })
    // Begun while no caller is proven, and not answered whole.
    let unanswered = 0
    session.on('stream', (stream: ServerHttp2Stream, headers, flags, raw: readonly string[]) => {
      // `close` follows, and is sufficient here.
      stream.on('error', () => undefined)
      const isUnproven = connections.isUnproven(socket)
      unanswered = isUnproven ? unanswered + 1 : 0
      stream.once('close', () => {
        if (stream.writableFinished) unanswered = Math.max(0, unanswered - 1)
      })
      if (session.destroyed) return
      // As many in flight as the client may have, and as many that it has reset.
      if (unanswered > 2 * mostStreams) {
        onCut('pipelined')
        return this.#cutOff(session)
      }
      const begin = (): void => {
        if (session.destroyed || stream.closed || stream.destroyed) return
        state.open++
        stream.once('close', () => state.open--)
        this.#begin(stream, { session, socket, peer, headers, flags, fields: raw })
      }
      // One read can bring hundreds of requests, each with its reset: those are not begun.
      if (isUnproven) void turn().then(begin)
      else begin()
    })
    session.on('error', () => session.destroy())
    session.once('close', () => {
      this.#sessions.delete(session)
      releaseSession(session)
    })
    if (this.#draining) session.close()
  }

  #begin(
    stream: ServerHttp2Stream,
    { session, socket, peer, headers, flags, fields }: StreamHead,
  ): void {
    const activity = this.#parts.connections.beginRequest(socket)
    const tracked: TrackedAnswer = { stream, taken: false, since: elapsed() }
    this.#answers.add(tracked)
    stream.once('close', () => {
      this.#answers.delete(tracked)
      activity[Symbol.dispose]()
    })
    this.#serveStream(stream, headers, new HeaderList(fields), {
      peer,
      activity,
      hasBody: (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0,
      onTaken: () => (tracked.taken = true),
      retire: () => session.close(),
    })
  }

  /**
   * Also closes connections that have been idle for long. Node's own timeouts keep connections that
   * break off in memory until the timeout.
   */
  #check(): void {
    const at = elapsed()
    for (const answer of this.#answers) {
      const { writableLength: waiting } = answer.stream
      const patienceMs = this.#parts.stalledMs + (waiting / slowestBytesPerSecond) * 1000
      if (waiting === 0 || answer.taken) {
        answer.taken = false
        answer.since = at
      } else if (at - answer.since >= patienceMs) {
        this.#answers.delete(answer)
        this.#parts.onCut('stalled')
        answer.stream.close(constants.NGHTTP2_CANCEL)
      }
    }
    for (const [session, state] of this.#sessions) {
      if (state.open > 0) state.idleSince = at
      else if (session.closed) this.#cutOff(session)
      else if (at - state.idleSince >= limits.idleMs) session.close()
    }
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]()
  }

  /** GOAWAY makes clients open no more streams here; those in flight complete. */
  retire(): void {
    for (const session of this.#sessions.keys()) session.close()
  }

  drain(): void {
    this.#draining = true
    this.retire()
  }

  cut(): void {
    for (const session of this.#sessions.keys()) this.#cutOff(session)
  }

  /** `close` alone would wait forever for a client that reads nothing. */
  #cutOff(session: Http2Session): void {
    session.destroy(new Error('cut'), constants.NGHTTP2_INTERNAL_ERROR)
    this.#sessions.get(session)?.socket.destroy()
  }

  #serveStream(
    stream: ServerHttp2Stream,
    fields: IncomingHttpHeaders,
    raw: HeaderList,
    { peer, hasBody, activity, onTaken, retire }: StreamParts,
  ): void {
    const path = fields[':path']
    const host = fields[':authority'] ?? fields.host
    // RFC 9113 section 8.3.1: a request that names two hosts is malformed; 8.5: CONNECT has no
    // path.
    if (path === undefined || (fields.host !== undefined && fields.host !== host)) {
      return refuseStream(stream, malformed)
    }
    const client = new WaitingClient()
    stream.once('close', () => client.abort(clientGone))
    stream.once('finish', () => {
      client.abort(clientGone)
      discardRest(stream)
    })
    if (fields.expect === '100-continue') stream.additionalHeaders({ ':status': 100 })
    const own = raw.without((name) => name.startsWith(':') || name === 'host')
    const incoming: Incoming = {
      id: requestId(),
      method: fields[':method'] ?? 'GET',
      url: path,
      headers: host === undefined ? own : new HeaderList(['host', host, ...own.raw]),
      peer,
      ...(hasBody && { body: stream }),
      upgrade: false,
      signal: client,
      client,
      onProven: activity.proven,
    }
    const { onBroken } = this.#parts
    const writer = writerOf(stream, incoming.method === 'HEAD', {
      onBroken,
      onTaken,
      client,
      // As in an API server (apiserver pkg/endpoints/filters/authentication.go): a flood of
      // refusals needs new connections.
      onHead: (status, last) => {
        if (last || status === 401) retire()
      },
    })
    answer(incoming, writer, this.#parts).catch((cause: unknown) => {
      onBroken(cause)
      stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    })
  }
}

/** Statuses without a body, whatever the fields say. */
const bodiless = new Set([204, 205, 304])

function writerOf(
  stream: ServerHttp2Stream,
  isHead: boolean,
  callbacks: Required<SinkCallbacks> & {
    readonly onHead: (status: number, last: boolean) => void
  },
): ResponseWriter {
  let trailers: Record<string, string[]> = {}
  stream.once('wantTrailers', () => stream.sendTrailers(trailers))
  return {
    writeHead: (status, headers, last) => {
      stream.respond([':status', String(status), ...endToEnd(headers).raw], {
        endStream: isHead || bodiless.has(status),
        waitForTrailers: true,
        sendDate: false,
      } as Parameters<ServerHttp2Stream['respond']>[1])
      callbacks.onHead(status, last)
    },
    flush: () => undefined,
    end: (body) => void (stream.writableEnded || stream.end(body, callbacks.onTaken)),
    sink: () =>
      new StreamSink(stream, {
        ...callbacks,
        trailers: (raw) => (trailers = grouped(raw)),
        breakOff: () => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
      }),
  }
}

function grouped(raw: readonly string[]): Record<string, string[]> {
  const fields: Record<string, string[]> = {}
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase()
    fields[name] = [...(fields[name] ?? []), raw[i + 1] ?? '']
  }
  return fields
}

const malformed = `${JSON.stringify(badRequest('the request could not be understood'))}\n`

/** Answers a malformed request. */
function refuseStream(stream: ServerHttp2Stream, body: string): void {
  stream.once('finish', () => discardRest(stream))
  stream.respond({ ':status': 400, 'content-type': 'application/json' })
  stream.end(body)
}

/**
 * Discards what the client still sends after its whole answer, and closes the stream if it does not
 * stop.
 */
function discardRest(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return
  stream.resume()
  afterUnlessClosed(stream, limits.lingerMs, () => stream.close(constants.NGHTTP2_NO_ERROR))
}
