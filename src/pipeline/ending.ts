import { follow, LightAbort } from '../base/abort.ts'
import type { Exchange, Handler, Reply } from '../exchange/exchange.ts'
import type { StatusError } from '../kube/status.ts'

/** Lets a layer end a request whose client still waits. */
export class Ending {
  readonly #exchange: Exchange
  readonly #abort = new LightAbort()
  readonly #ended = Promise.withResolvers<never>()

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    follow(exchange.signal, this.#abort)
    // An answer that has begun is broken off by the signal alone, and nobody waits for this.
    this.#ended.promise.catch(() => undefined)
  }

  /** Hands the exchange on with a signal that aborts when the client has gone, and when `end` is called. */
  serve(next: Handler<Exchange>): Promise<Reply> {
    const reply = next({ ...this.#exchange, signal: this.#abort.signal })
    return Promise.race([this.#ended.promise, reply])
  }

  /** Answers with the Status of `reason`, or breaks the answer off if it has begun. */
  end(reason: StatusError): void {
    this.#ended.reject(reason)
    this.#abort.abort(reason)
  }
}
