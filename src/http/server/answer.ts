import { LightAbort, onAbort } from '../../base/abort.ts'
import type { Handler, Incoming, RequestClient, Sink, WireReply } from '../exchange/exchange.ts'
import type { HeaderList } from '../exchange/headers.ts'
import type { ConnectionLimit, OnCut } from './connection-limit.ts'
import { randomBytes } from 'node:crypto'
import type { Writable } from 'node:stream'
import { limits } from './limits.ts'

/** The handling of requests, for every protocol. */
export interface RequestHandling {
  readonly handler: Handler<Incoming, WireReply>
  /**
   * Called with a failure that cannot be reported to the client: the answer had begun, or the
   * connection was gone.
   */
  readonly onBroken: (cause: unknown) => void
  /**
   * Called for each connection that the hub closes because of what its client does or fails to do.
   */
  readonly onCut?: OnCut
}

/** What the protocols of a listener share. */
export interface ListenerParts extends Required<RequestHandling> {
  readonly connections: ConnectionLimit
  /** See `limits`. */
  readonly stalledMs: number
  readonly pipelined: number
}

/** Writes the answer to one request. */
export interface ResponseWriter {
  /**
   * Sets status and fields, which are sent with the first bytes or by `flush`. With `last` the
   * connection takes no more requests.
   */
  writeHead(status: number, headers: HeaderList, last: boolean): void
  flush(): void
  /** Sends the whole body. */
  end(body: Uint8Array): void
  /** For a body in parts; may be called once. */
  sink(): Sink & { readonly started: boolean }
}

/** Answers one request that is no upgrade. Rejects where the handler fails. */
export async function answer(
  incoming: Incoming,
  writer: ResponseWriter,
  { handler }: RequestHandling,
): Promise<void> {
  const { signal } = incoming
  const reply = await handler(incoming)
  if (signal.reason === clientGone) return
  // It was ended meanwhile, and nothing reads this answer to its end.
  if (signal.aborted && reply.kind !== 'body') throw signal.reason
  if (reply.kind === 'upgrade')
    throw new Error('the handler answered a plain request with an upgrade')
  // A certificate whose date has come meanwhile counts in a new handshake, which sees all of it.
  const isLast = reply.status === 401 && incoming.peer.tls?.outOfDate !== undefined
  writer.writeHead(reply.status, reply.headers, isLast)
  if (reply.kind === 'body') return writer.end(reply.body)
  const sink = writer.sink()
  const giveUp = reply.source(sink)
  // A watch may send nothing for minutes, but its client waits for the head.
  if (!sink.started) writer.flush()
  onAbort(signal, () => {
    giveUp()
    // Ended in the client's place: nothing else would break the answer off.
    if (signal.reason !== clientGone) sink.fail(signal.reason as Error)
  })
}

/** A client that waits for an answer: the signal of its request, and what was written to it. */
export class WaitingClient extends LightAbort implements RequestClient {
  sentBytes = 0
  meter?: NonNullable<RequestClient['meter']>
  onWaiting?: NonNullable<RequestClient['onWaiting']>

  wrote(bytes: number): void {
    this.sentBytes += bytes
    this.meter?.written(bytes)
  }
}

/** The reason of a request's aborted signal: its client disconnected, or has its whole answer. */
class ClientGone extends Error {
  readonly code = 'CLIENT_GONE'
  constructor() {
    super('the client has closed its connection')
  }
}

/**
 * One instance for all requests: each ends with it, and its stack trace would carry no information.
 */
export const clientGone = new ClientGone()

const prefix = randomBytes(6).toString('hex')
let last = 0

/** Names a request among those of this node's hubs: this process, and a number in it. */
export const requestId = (): string => `${prefix}-${++last}`

export interface SinkCallbacks {
  /** Called with the cause when an answer fails while its client is still connected. */
  readonly onBroken: (cause: unknown) => void
  /** The one that the answer is for. */
  readonly client: WaitingClient
  /** Called when the client has taken something written; absent: no one waits for that. */
  readonly onTaken?: () => void
}

export interface SinkOptions extends SinkCallbacks {
  /** Alternating names and values, which follow what has been written. */
  readonly trailers: (raw: readonly string[]) => void
  /** Aborts the answer so that the client detects the truncation. */
  readonly breakOff: (cause: Error) => void
}

/** A Sink over a stream whose head is set, and is sent with the first bytes. */
export class StreamSink implements Sink {
  readonly #stream: Writable
  readonly #options: SinkOptions
  #draining: Promise<void> | undefined
  #started = false
  #failed = false

  constructor(stream: Writable, options: SinkOptions) {
    this.#stream = stream
    this.#options = options
  }

  get started(): boolean {
    return this.#started
  }

  write(chunk: Uint8Array, onWritten?: () => void): boolean {
    this.#started = true
    const stream = this.#stream
    const { client, onTaken } = this.#options
    client.wrote(chunk.byteLength)
    if (onWritten === undefined) stream.write(chunk, onTaken)
    else
      stream.write(chunk, (failure) => {
        onTaken?.()
        // A stream of HTTP/2 that was reset reports no failure for what may still be on its way.
        if (!failure && !stream.destroyed) onWritten()
      })
    if (stream.writableLength < limits.answerBytes) return true
    // Node holds it until the end of the tick, and the socket may take it now. A buffer that is to
    // be used again would come back at that end only: its source stops.
    if (onWritten === undefined && stream.writableCorked > 0) stream.uncork()
    if (stream.writableLength < limits.answerBytes) return true
    client.onWaiting?.(chunk.byteLength, this)
    return false
  }

  /**
   * All calls meanwhile share one promise: a source that has to stop may still have many chunks to
   * write, and calls this after each.
   */
  drained(): Promise<void> {
    const stream = this.#stream
    if (stream.destroyed || !stream.writableNeedDrain) return Promise.resolve()
    return (this.#draining ??= new Promise((resolve) => {
      const go = (): void => {
        stream.off('drain', go)
        stream.off('close', go)
        this.#draining = undefined
        resolve()
      }
      stream.on('drain', go)
      stream.on('close', go)
    }))
  }

  end(trailers?: readonly string[]): void {
    this.#started = true
    if (trailers && trailers.length > 0) this.#options.trailers(trailers)
    this.#stream.end()
  }

  fail(cause: Error): void {
    this.#started = true
    // A destroyed stream means that the client disconnected, which is no failure.
    if (!this.#stream.destroyed && !this.#failed) this.#options.onBroken(cause)
    this.#failed = true
    this.#options.breakOff(cause)
  }
}
