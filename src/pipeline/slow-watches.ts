import type { ByteSource, Exchange, Handler, Sink, WireReply } from '../exchange/exchange.ts'
import { isShort } from './in-flight.ts'

/** A watch was ended for what it held; its client lists and watches again, as when an API server ends a slow watch. */
class SlowWatch extends Error {
  readonly code = 'SLOW_WATCH'
  constructor() {
    super(
      'of the watches whose clients do not take them it held most, and together they held too much',
    )
  }
}

interface Slow {
  held: number
  readonly end: () => void
}

/**
 * What watches, and other answers that last, have written for clients that do not take it, together: it may come to a quarter of
 * `limitBytes`. Beyond that the one is broken off that holds most, until it is less; `onEnded` is told of each. What a client may leave
 * waiting before its source is told to stop is not counted.
 */
export class SlowWatches {
  readonly #limit: number
  readonly #onEnded: () => void
  readonly #slow = new Set<Slow>()
  #held = 0

  constructor(limitBytes: number, onEnded: () => void) {
    this.#limit = limitBytes / 4
    this.#onEnded = onEnded
  }

  /** Bytes that wait. */
  get held(): number {
    return this.#held
  }

  /** A layer that sees what clients are sent. */
  readonly bounding =
    (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> =>
    async (exchange) => {
      const reply = await next(exchange)
      if (reply.kind !== 'bytes' || isShort(exchange)) return reply
      return { ...reply, source: this.#bounded(reply.source) }
    }

  #bounded(source: ByteSource): ByteSource {
    return (sink) => {
      let ended = false
      let giveUp = (): void => undefined
      const one: Slow = {
        held: 0,
        end: () => {
          ended = true
          giveUp()
          sink.fail(new SlowWatch())
        },
      }
      giveUp = source({
        ...passingOn(sink),
        write: (chunk) => {
          if (ended) return false
          if (sink.write(chunk)) return true
          // It has room again, or is gone: either way nothing is held any more.
          if (one.held === 0) void sink.drained().then(() => this.#release(one))
          this.#hold(one, chunk.byteLength)
          return false
        },
      })
      if (ended) giveUp()
      return giveUp
    }
  }

  #hold(one: Slow, bytes: number): void {
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

  #release(one: Slow): void {
    this.#slow.delete(one)
    this.#held -= one.held
    one.held = 0
  }
}

const passingOn = (sink: Sink): Omit<Sink, 'write'> => ({
  drained: () => sink.drained(),
  end: (trailers) => sink.end(trailers),
  fail: (cause) => sink.fail(cause),
})
