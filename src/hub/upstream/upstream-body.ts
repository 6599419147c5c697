import type { Dispatcher } from 'undici'
import { joined } from '../../base/bytes.ts'
import type { Sink } from '../../http/exchange/exchange.ts'

/** What waits for the end of a body. */
export interface BodyReader {
  /** All of it has arrived, it broke off, or nothing reads it any more. Called more than once. */
  over(): void
}

/** How much of an answer may wait for its sink before the upstream's stream is paused. */
export const unattachedBytes = 256 * 1024

/**
 * The body of an answer on its way to a sink. Bytes that arrive before the sink is attached wait
 * here: to pause a connection that is being read costs more than to hold the few bytes.
 */
export class UpstreamBody {
  readonly #reader: BodyReader
  #sink: Sink | undefined
  #early: Uint8Array[] = []
  #earlyBytes = 0
  #outcome: { trailers: string[] } | { error: Error } | undefined
  #over = false

  constructor(reader: BodyReader) {
    this.#reader = reader
  }

  /** Bytes that wait for a sink. */
  get early(): number {
    return this.#earlyBytes
  }

  /** Whether it has ended, or has lost its reader. */
  get isOver(): boolean {
    return this.#over || this.#outcome !== undefined
  }

  /** The whole body, where it has ended and no sink was attached. */
  get whole(): Buffer | undefined {
    const isWhole = this.#outcome !== undefined && 'trailers' in this.#outcome
    return isWhole && this.#sink === undefined ? joined(this.#early) : undefined
  }

  attach(sink: Sink, controller: Dispatcher.DispatchController): () => void {
    const early = this.#early
    this.#early = []
    this.#sink = sink
    const room = early.map((chunk) => sink.write(chunk)).at(-1) ?? true
    if (this.#outcome) this.#finish(this.#outcome)
    else if (!room) this.#wait(sink, controller)
    else if (controller.paused) controller.resume()
    return () => {
      if (this.#over) return
      this.#over = true
      this.#sink = undefined
      controller.abort(new Error('the reader of the answer gave up'))
      this.#reader.over()
    }
  }

  data(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    if (this.#over) return
    if (this.#sink === undefined) {
      this.#early.push(chunk)
      this.#earlyBytes += chunk.byteLength
      if (this.#earlyBytes > unattachedBytes) controller.pause()
      return
    }
    if (!this.#sink.write(chunk)) this.#wait(this.#sink, controller)
  }

  #wait(sink: Sink, controller: Dispatcher.DispatchController): void {
    controller.pause()
    void sink.drained().then(() => {
      if (!this.#over) controller.resume()
    })
  }

  end(trailers: string[]): void {
    this.#finish({ trailers })
  }

  fail(error: Error): void {
    this.#finish({ error })
  }

  #finish(outcome: { trailers: string[] } | { error: Error }): void {
    this.#outcome ??= outcome
    this.#reader.over()
    if (this.#sink === undefined || this.#over) return
    this.#over = true
    if ('error' in this.#outcome) this.#sink.fail(this.#outcome.error)
    else this.#sink.end(this.#outcome.trailers)
  }
}

/** What `toString('latin1')` calls in the end; an answer has two dozen of them. */
type Latin1 = Buffer & { latin1Slice(): string }

/** Header fields or trailers as undici has them. */
export function rawStrings(raw: unknown): string[] {
  if (!Array.isArray(raw)) return []
  const strings: string[] = []
  for (const part of raw as readonly unknown[])
    strings.push(part instanceof Buffer ? (part as Latin1).latin1Slice() : String(part))
  return strings
}
