import type { Exchange, Handler, RequestClient, WireReply } from '../../http/exchange/exchange.ts'

/** The share of the process's memory for slow clients. */
export const watchesShare = 1 / 4

/**
 * A watch was ended because it held too much; its client watches again, as after an API server ends
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
  readonly client: RequestClient
}

/**
 * Bounds what watches and other long-running answers hold for slow clients, to a quarter of
 * `limitBytes`. Beyond that the one that holds most is broken off, and the next, until the rest
 * fits; `onEnded` is called for each. Bytes that a sink takes before it stops its source are not
 * counted.
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

  /** Counts the bytes that wait for clients of watches and the like. */
  readonly bounding =
    (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> =>
    (exchange) => {
      const { client } = exchange
      if (!client) return next(exchange)
      const one = { held: 0, client }
      client.onWaiting = (bytes, sink) => {
        // By then the client has room again or has disconnected: either way nothing is held.
        if (one.held === 0) void sink.drained().then(() => this.#release(one))
        this.#hold(one, bytes)
      }
      return next(exchange)
    }

  #hold(one: SlowClient, bytes: number): void {
    this.#slow.add(one)
    one.held += bytes
    this.#held += bytes
    while (this.#held > this.#limit) {
      const most = [...this.#slow].reduce((a, b) => (b.held > a.held ? b : a))
      this.#release(most)
      this.#onEnded()
      most.client.abort(new SlowWatch())
    }
  }

  #release(one: SlowClient): void {
    this.#slow.delete(one)
    this.#held -= one.held
    one.held = 0
  }
}
