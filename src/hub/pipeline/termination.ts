import { follow, LightAbort } from '../../base/abort.ts'
import type { Exchange, Handler, Reply } from '../../http/exchange/exchange.ts'
import { StatusError, type Status } from '../../api/kube/status.ts'
import { changesNothing } from '../../api/request/request-info.ts'

/** Lets a layer end a request whose client still waits for the answer. */
export class Termination {
  readonly #exchange: Exchange
  readonly #abort = new LightAbort()
  readonly #answer = Promise.withResolvers<Reply>()
  #sent = false

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    follow(exchange.signal, this.#abort)
  }

  /**
   * Passes the exchange on with a signal that aborts when the client disconnects, and after `end`;
   * `heard` follows its answer.
   */
  serve(next: Handler<Exchange>, heard: Pick<Exchange, 'onReceived'> = {}): Promise<Reply> {
    const { promise, resolve, reject } = this.#answer
    const onSent = (): void => {
      this.#sent = true
      this.#exchange.onSent?.()
    }
    next({ ...this.#exchange, ...heard, signal: this.#abort.signal, onSent }).then(resolve, reject)
    return promise
  }

  /**
   * Whether the client may safely repeat the request: it is a read, or no API server has received
   * any of it.
   */
  get repeatable(): boolean {
    return !this.#sent || changesNothing(this.#exchange)
  }

  /**
   * Answers with `refusal`, which may make the client repeat the request, or where the request is
   * not repeatable with `unknown`, which must not. An answer that has begun is broken off instead.
   */
  end(refusal: Status, unknown: Status): void {
    const reason = new StatusError(this.repeatable ? refusal : unknown)
    this.#answer.reject(reason)
    this.#abort.abort(reason)
  }
}
