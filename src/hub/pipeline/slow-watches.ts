import type { ByteSource, Exchange, Handler, WireReply } from '../../http/exchange/exchange.ts'
import { delegateTo } from '../../http/exchange/sink-wrappers.ts'
import { isShort } from './in-flight.ts'

/** What they may hold together of the memory that all of the process may use. */
export const watchesShare = 1 / 4

/**
 * A watch was ended because it held too much; its client watches again, as when an API server ends
 * a slow watch.
 */
class SlowWatch extends Error {
  readonly code = 'SLOW_WATCH'
  constructor() {
    super(
      'watches whose clients do not keep up held too much memory together, and this one held most',
    )
  }
}

interface SlowClient {
  held: number
  readonly end: () => void
}

/**
 * Bounds what watches and other lasting answers hold together for clients that do not keep up, to a
 * quarter of `limitBytes`. Beyond that the one that holds most is broken off, and the next, until
 * the rest fits; `onEnded` is called for each. What a sink takes before it asks its source to stop
 * is not counted.
 */
export class SlowWatches {
  readonly #limit: number
  readonly #onEnded: () => void
  readonly #slow = new Set<SlowClient>()
  #held = 0

  constructor(limitBytes: number, onEnded: () => void) {
    this.#limit = limitBytes * watchesShare
    this.#onEnded = onEnded
  }

  /** Bytes that wait for clients. */
  get held(): number {
    return this.#held
  }

  /** A layer that counts what waits for clients. */
  readonly bounding =
    (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> =>
    (exchange) => {
      if (isShort(exchange)) return next(exchange)
      return next(exchange).then((reply) =>
        reply.kind === 'bytes' ? { ...reply, source: this.#bounded(reply.source) } : reply,
      )
    }

  #bounded(source: ByteSource): ByteSource {
    return (sink) => {
      let ended = false
      let giveUp = (): void => undefined
      const one: SlowClient = {
        held: 0,
        end: () => {
          ended = true
          giveUp()
          sink.fail(new SlowWatch())
        },
      }
      giveUp = source({
        ...delegateTo(sink),
        write: (chunk) => {
          if (ended) return false
          if (sink.write(chunk)) return true
          // When it resolves the client has room again or is gone: either way nothing is held any
          // more.
          if (one.held === 0) void sink.drained().then(() => this.#release(one))
          this.#hold(one, chunk.byteLength)
          return false
        },
      })
      if (ended) giveUp()
      return giveUp
    }
  }

  #hold(one: SlowClient, bytes: number): void {
    this.#slow.add(one)
    one.held += bytes
    this.#held += bytes
    while (this.#held > this.#limit) {
      const most = [...this.#slow].reduce((a, b) => (b.held > a.held ? b : a))
      this.#release(most)
      this.#onEnded()
      most.end()
    }
  }

  #release(one: SlowClient): void {
    this.#slow.delete(one)
    this.#held -= one.held
    one.held = 0
  }
}
