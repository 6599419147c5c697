import { onAbort } from '../base/abort.ts'
import { elapsed } from '../base/clock.ts'
import type { ByteSource, Exchange, Handler, WireReply } from '../exchange/exchange.ts'
import { metered } from '../exchange/passing-on.ts'
import { StatusError, tooManyRequests } from '../kube/status.ts'
import { Ending } from './ending.ts'
import { isShort, type OnShed } from './in-flight.ts'

/** What a request body of unknown length is counted as. */
const unknownBytes = 64 * 1024

/** The largest body that an API server takes (apiserver pkg/server/config.go, MaxRequestBodyBytes). */
const largestBody = 3 * 1024 * 1024

/** So many short requests are served however large the process is: it shrinks only while it works. */
const alwaysServed = 4

/** How long a measurement of the process's size is used. */
const sampleMs = 250

interface Holder {
  readonly ending: Ending
  held: number
}

const tooLittle = (): StatusError =>
  new StatusError(tooManyRequests('the hub is short of memory, please try again later', 1))

/**
 * Bounds what short requests hold together: request bodies, and bytes that came from the cloud and have not gone to a client. They may
 * hold half of `limitBytes`; the rest is the process itself. Beyond that new short requests are answered 429, and if those under way
 * still grow, the one that holds most is ended with 429. New ones are also answered 429 while the whole process is larger than
 * `limitBytes`. Watches are bounded elsewhere (see `SlowWatches`).
 */
export class MemoryBudget {
  readonly #limit: number
  readonly #onShed: OnShed
  readonly #size: () => number
  readonly #holders = new Map<string, Holder>()
  #held = 0
  #sampled = { at: Number.NEGATIVE_INFINITY, isLarge: false }

  constructor(limitBytes: number, onShed: OnShed, size = () => process.memoryUsage.rss()) {
    this.#limit = limitBytes
    this.#onShed = onShed
    this.#size = size
  }

  /** Bytes that short requests hold. */
  get held(): number {
    return this.#held
  }

  /** A layer that answers 429 where memory is short. */
  readonly shedding =
    (next: Handler<Exchange>): Handler<Exchange> =>
    (exchange) => {
      if (!isShort(exchange)) return next(exchange)
      if (this.#isFull()) {
        this.#onShed('memory')
        throw tooLittle()
      }
      const { id, signal, body, headers } = exchange
      const ending = new Ending(exchange)
      this.#holders.set(id, { ending, held: 0 })
      onAbort(signal, () => this.#release(id))
      if (body) this.#add(id, bodyBytes(headers.get('content-length')))
      return ending.serve(next)
    }

  #isFull(): boolean {
    if (this.#held >= this.#limit / 2) return true
    return this.#holders.size >= alwaysServed && this.#isLarge()
  }

  #isLarge(): boolean {
    const at = elapsed()
    if (at - this.#sampled.at >= sampleMs)
      this.#sampled = { at, isLarge: this.#size() > this.#limit }
    return this.#sampled.isLarge
  }

  #release(id: string): void {
    this.#held -= this.#holders.get(id)?.held ?? 0
    this.#holders.delete(id)
  }

  /** Adds to what a request holds; a negative number takes away. */
  #add(id: string, bytes: number): void {
    const holder = this.#holders.get(id)
    if (!holder) return
    const before = holder.held
    // More may leave than came from the cloud: filters add bytes, and the cache answers, too.
    holder.held = Math.max(0, before + bytes)
    this.#held += holder.held - before
    if (bytes > 0 && this.#held > this.#limit / 2) this.#endLargest()
  }

  #endLargest(): void {
    let largest: [string, Holder] | undefined
    for (const each of this.#holders) {
      if (largest === undefined || each[1].held > largest[1].held) largest = each
    }
    if (!largest) return
    this.#onShed('memory')
    this.#release(largest[0])
    largest[1].ending.end(tooLittle())
  }

  /** Counts the bytes of an answer as they come from the cloud. */
  received(id: string, source: ByteSource): ByteSource {
    return this.#counting(id, source, 1)
  }

  /** A layer above all that hold bytes: what passes through it is no longer held. */
  readonly sending =
    (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> =>
    async (exchange) => {
      const reply = await next(exchange)
      if (reply.kind !== 'bytes' || !this.#holders.has(exchange.id)) return reply
      return { ...reply, source: this.#counting(exchange.id, reply.source, -1) }
    }

  #counting(id: string, source: ByteSource, sign: 1 | -1): ByteSource {
    if (!this.#holders.has(id)) return source
    return metered(source, (bytes) => this.#add(id, sign * bytes))
  }
}

function bodyBytes(contentLength: string | undefined): number {
  if (contentLength === undefined) return unknownBytes
  return Math.min(Number(contentLength) || 0, largestBody)
}
