import { constants, type ClientHttp2Stream } from 'node:http2'
import type { Dispatcher } from 'undici'
import { endToEnd, HeaderList } from '../exchange/headers.ts'
import { NotConnected, StreamBroken, StreamRefused } from './wire-error.ts'

export interface StreamRequest {
  readonly method: string
  readonly path: string
  /** Alternating names and values. */
  readonly headers: readonly string[]
}

/** Sends a request over HTTP/1.1 instead. */
export type OverHttp1 = (request: StreamRequest, handler: Dispatcher.DispatchHandler) => void

/** A session that opens streams. */
export interface StreamOpener {
  /** Opens a stream for a request without a body. */
  open(headers: string[]): ClientHttp2Stream
  /**
   * Whether the server provably did not process a closed stream: its GOAWAY named an earlier stream
   * as the last.
   */
  readonly isUnprocessed: (stream: ClientHttp2Stream) => boolean
}

/**
 * One request over HTTP/2. Calls its handler as undici does for HTTP/1.1, so that callers need not
 * distinguish the two.
 *
 *   waiting -> open     a session has room, and a stream is open
 *   open -> over        the handler got the end
 */
export class Stream implements Dispatcher.DispatchController {
  readonly #origin: URL
  readonly #request: StreamRequest
  readonly #handler: Dispatcher.DispatchHandler
  readonly #http1: OverHttp1
  #stream: ClientHttp2Stream | undefined
  #over = false
  #reason: Error | null = null
  #answered = false
  rawHeaders: string[] | null = null
  rawTrailers: string[] | null = null

  constructor(
    origin: URL,
    request: StreamRequest,
    handler: Dispatcher.DispatchHandler,
    http1: OverHttp1,
  ) {
    this.#origin = origin
    this.#request = request
    this.#handler = handler
    this.#http1 = http1
  }

  get aborted(): boolean {
    return this.#reason !== null
  }

  get reason(): Error | null {
    return this.#reason
  }

  get paused(): boolean {
    return this.#stream?.isPaused() ?? false
  }

  pause(): void {
    this.#stream?.pause()
  }

  resume(): void {
    this.#stream?.resume()
  }

  /** Ends this stream only: the session and its other streams continue. */
  abort(reason: Error): void {
    if (this.#over) return
    this.#reason = reason
    this.#stream?.close(constants.NGHTTP2_CANCEL)
    this.#fail(reason)
  }

  /** Fails the request because no session could be opened. */
  failUnconnected(cause: unknown): void {
    this.#fail(new NotConnected(this.#origin.origin, cause))
  }

  /** Sends the request over HTTP/1.1 instead, unless it is over. */
  fallBack(): void {
    if (this.#over) return
    this.#over = true
    this.#http1(this.#request, this.#handler)
  }

  /** Returns the stream, which counts until it closes; `undefined` where the request is over. */
  start(session: StreamOpener): ClientHttp2Stream | undefined {
    this.#handler.onRequestStart?.(this, {})
    if (this.#over) return undefined
    const stream = this.#opened(session)
    if (!stream) return undefined
    this.#stream = stream
    stream.on('response', (headers, _flags, raw: unknown) => {
      this.#answered = true
      this.rawHeaders = fields(raw)
      this.#handler.onResponseStart?.(this, Number(headers[':status']), {})
    })
    stream.on('trailers', (_trailers, _flags, raw: unknown) => {
      this.rawTrailers = fields(raw)
    })
    stream.on('data', (chunk: Buffer) => {
      if (!this.#over) this.#handler.onResponseData?.(this, chunk)
    })
    let cause: Error | undefined
    stream.on('error', (error) => {
      cause = error
    })
    stream.once('close', () => {
      if (this.#over) return
      const refused =
        stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || session.isUnprocessed(stream)
      if (refused && !this.#answered) this.#fail(new StreamRefused(this.#origin.origin))
      else if (
        stream.rstCode === constants.NGHTTP2_NO_ERROR &&
        stream.readableEnded &&
        this.#answered
      )
        this.#end()
      else this.#fail(new StreamBroken(this.#origin.origin, cause))
    })
    return stream
  }

  /**
   * `undefined` where HTTP/2 cannot carry the head, such as a repeated field that must be unique.
   */
  #opened(session: StreamOpener): ClientHttp2Stream | undefined {
    try {
      return session.open(http2Head(this.#origin, this.#request))
    } catch {
      this.fallBack()
      return undefined
    }
  }

  #end(): void {
    this.#over = true
    this.#handler.onResponseEnd?.(this, {})
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#over = true
    this.#handler.onResponseError?.(this, error)
  }
}

/**
 * A request's head for HTTP/2: lower-case names, no hop-by-hop fields, and the authority from the
 * upstream's address, never from the Host field.
 */
function http2Head({ host, protocol }: URL, { method, path, headers }: StreamRequest): string[] {
  const passed = endToEnd(new HeaderList(headers)).without(
    (name) => name === 'host' || name === 'http2-settings' || name.startsWith(':'),
  )
  // prettier-ignore
  const head = [':method', method, ':scheme', protocol.slice(0, -1), ':authority', host, ':path', path]
  return [...head, ...passed.raw.map((part, i) => (i % 2 === 0 ? part.toLowerCase() : part))]
}

/** The fields without pseudo-fields. */
const fields = (raw: unknown): string[] =>
  Array.isArray(raw)
    ? [...new HeaderList(raw.map(String)).without((name) => name.startsWith(':')).raw]
    : []
