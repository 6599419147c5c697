import type { Dispatcher } from 'undici'

/**
 * A watch that the hub can end: its handler gets a clean end, as if the server had ended the
 * answer. Before the answer has begun, the request fails instead.
 */
export class EndableRequest implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #onOver: (ended: EndableRequest) => void
  #controller: Dispatcher.DispatchController | undefined
  #answered = false
  #over = false

  constructor(handler: Dispatcher.DispatchHandler, onOver: (ended: EndableRequest) => void) {
    this.#handler = handler
    this.#onOver = onOver
  }

  end(reason: Error): void {
    const controller = this.#controller
    if (this.#over || !controller) return
    if (this.#answered) this.onResponseEnd(controller, {})
    controller.abort(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#controller = controller
    this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(...[controller, status, headers, message]: Parameters<ResponseStart>): void {
    this.#answered = status >= 200
    this.#handler.onResponseStart?.(controller, status, headers, message)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#over) this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(...[controller, trailers]: Parameters<ResponseEnd>): void {
    if (!this.#finish()) return
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#finish()) return
    this.#handler.onResponseError?.(controller, error)
  }

  /** False where the request was already over. */
  #finish(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#onOver(this)
    return true
  }
}

type ResponseStart = NonNullable<Dispatcher.DispatchHandler['onResponseStart']>
type ResponseEnd = NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>
