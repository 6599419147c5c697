import type { Dispatcher } from 'undici'
import type { Sink } from '../../http/exchange/exchange.ts'

/** How much of an answer may wait for its sink before the upstream's stream is paused. */
export const unattachedBytes = 256 * 1024

/**
 * The body of an answer on its way to a sink. Bytes that arrive before the sink is attached wait
 * here: to pause a connection that is being read costs more than to hold the few bytes.
 */
export class UpstreamBody {
  readonly #release: () => void
  #sink: Sink | undefined
  #early: Uint8Array[] = []
  #earlyBytes = 0
  #outcome: { trailers: string[] } | { error: Error } | undefined
  #over = false

  constructor(release: () => void) {
    this.#release = release
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
    return isWhole && this.#sink === undefined ? Buffer.concat(this.#early) : undefined
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
      this.#release()
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
    this.#release()
    if (this.#sink === undefined || this.#over) return
    this.#over = true
    if ('error' in this.#outcome) this.#sink.fail(this.#outcome.error)
    else this.#sink.end(this.#outcome.trailers)
  }
}

/** Header fields or trailers as undici has them. */
export function rawStrings(raw: unknown): string[] {
  if (!Array.isArray(raw)) return []
  return raw.map((part: unknown) =>
    Buffer.isBuffer(part) ? part.toString('latin1') : String(part),
  )
}
