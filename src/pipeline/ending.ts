import { follow, LightAbort } from '../base/abort.ts'
import type { Exchange, Handler, Reply } from '../exchange/exchange.ts'
import type { StatusError } from '../kube/status.ts'

/** Lets a layer end a request whose client still waits. */
export class Ending {
  readonly #exchange: Exchange
  readonly #abort = new LightAbort()
  readonly #answer = Promise.withResolvers<Reply>()

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    follow(exchange.signal, this.#abort)
  }

  /** Hands the exchange on with a signal that aborts when the client has gone, and when `end` is called. */
  serve(next: Handler<Exchange>): Promise<Reply> {
    const { promise, resolve, reject } = this.#answer
    try {
      next({ ...this.#exchange, signal: this.#abort.signal }).then(resolve, reject)
    } catch (cause) {
      reject(cause)
    }
    return promise
  }

  /** Answers with the Status of `reason`, or breaks the answer off if it has begun. */
  end(reason: StatusError): void {
    this.#answer.reject(reason)
    this.#abort.abort(reason)
  }
}
