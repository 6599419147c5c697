import { constants, type ClientHttp2Stream } from 'node:http2'
import type { Dispatcher } from 'undici'
import { endToEnd, HeaderList } from '../exchange/headers.ts'
import { NotConnected, StreamBroken, StreamRefused } from './wire-error.ts'

export interface StreamRequest {
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** Where a request goes that does not stay on the stream it was opened on. */
export interface StreamFallbacks {
  /** To another session; called once at most. */
  readonly retry: (stream: Stream) => void
  /** Over HTTP/1.1. */
  readonly http1: (request: StreamRequest, handler: Dispatcher.DispatchHandler) => void
}

/** What a stream is opened on. */
export interface StreamOpener {
  /** Opens a stream for a request without a body. */
  open(headers: string[]): ClientHttp2Stream
  /**
   * Whether the server provably did not process a stream that is over: its GOAWAY named an earlier
   * one as the last.
   */
  readonly isUnprocessed: (stream: ClientHttp2Stream) => boolean
}

/**
 * One request over HTTP/2. Its handler is called as undici calls it for HTTP/1.1, so that a caller
 * need not know which of the two it was.
 *
 *   waiting -> open -> over     no session has room yet; a stream is open; the handler was told the
 *   end open -> waiting             the first time that the server refuses the stream
 */
export class Stream implements Dispatcher.DispatchController {
  readonly #origin: URL
  readonly #request: StreamRequest
  readonly #handler: Dispatcher.DispatchHandler
  readonly #fallbacks: StreamFallbacks
  #stream: ClientHttp2Stream | undefined
  #over = false
  #reason: Error | null = null
  #refusals = 0
  #answered = false
  rawHeaders: string[] | null = null
  rawTrailers: string[] | null = null

  constructor(
    origin: URL,
    request: StreamRequest,
    handler: Dispatcher.DispatchHandler,
    ways: StreamFallbacks,
  ) {
    this.#origin = origin
    this.#request = request
    this.#handler = handler
    this.#fallbacks = ways
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

  /** Ends this stream alone: the session and its other streams go on. */
  abort(reason: Error): void {
    if (this.#over) return
    this.#reason = reason
    this.#stream?.close(constants.NGHTTP2_CANCEL)
    this.#fail(reason)
  }

  /** There is no session to be had. */
  failUnconnected(cause: unknown): void {
    this.#fail(new NotConnected(this.#origin.origin, cause))
  }

  /** Goes over HTTP/1.1 instead, where the request is still wanted. */
  fallBack(): void {
    if (this.#over) return
    this.#over = true
    this.#fallbacks.http1(this.#request, this.#handler)
  }

  /**
   * Returns the stream to be counted until it closes; `undefined` where the request is no longer
   * wanted.
   */
  start(session: StreamOpener): ClientHttp2Stream | undefined {
    if (this.#refusals === 0) this.#handler.onRequestStart?.(this, {})
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
      if (refused && !this.#answered) this.#refused()
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
   * `undefined` where the head is one that HTTP/2 cannot carry, such as a field said twice that may
   * be said once.
   */
  #opened(session: StreamOpener): ClientHttp2Stream | undefined {
    try {
      return session.open(http2Head(this.#origin, this.#request))
    } catch {
      this.fallBack()
      return undefined
    }
  }

  #refused(): void {
    this.#stream = undefined
    this.#refusals++
    if (this.#refusals === 1) this.#fallbacks.retry(this)
    else this.#fail(new StreamRefused(this.#origin.origin))
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
 * A request's head as HTTP/2 has it: lower-case names, no fields that concern a connection, and the
 * authority from the upstream's address, never from a Host field.
 */
function http2Head({ host, protocol }: URL, { method, path, headers }: StreamRequest): string[] {
  const passed = endToEnd(new HeaderList(headers)).without(
    (name) => name === 'host' || name === 'http2-settings' || name.startsWith(':'),
  )
  // prettier-ignore
  const head = [':method', method, ':scheme', protocol.slice(0, -1), ':authority', host, ':path', path]
  return [...head, ...passed.raw.map((part, i) => (i % 2 === 0 ? part.toLowerCase() : part))]
}

/** Without the pseudo-fields. */
const fields = (raw: unknown): string[] =>
  Array.isArray(raw)
    ? [...new HeaderList(raw.map(String)).without((name) => name.startsWith(':')).raw]
    : []
