import type { Logger } from 'pino'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'

/** A filter that fails at one object fails at thousands in a list. */
const togetherMs = 60_000

/**
 * A message may contain the name of an object: beyond so many of a filter, further messages are not
 * logged separately.
 */
const mostMessages = 8

/**
 * Logs failures of filters: the first of each filter and message at once, and then at most once a
 * minute, with the number of objects. The metric counts each.
 */
export class FailureLog implements Disposable {
  readonly #failures: RepeatLimiter<{ readonly filter: string; readonly err: unknown }>

  /** `together`: the milliseconds for which failures are logged together. */
  constructor(log: Logger, together = togetherMs) {
    this.#failures = new RepeatLimiter(together, (failure, objects) =>
      log.error({ ...failure, objects }, 'a filter failed'),
    )
  }

  add(filter: string, err: unknown): void {
    this.#failures.add(this.#keyOf(filter, err), { filter, err })
  }

  /** Logs what is still pending. */
  [Symbol.dispose](): void {
    this.#failures[Symbol.dispose]()
  }

  #keyOf(filter: string, err: unknown): string {
    const own = `${filter}: `
    const key = own + (err instanceof Error ? err.message : String(err))
    if (this.#failures.has(key)) return key
    const messages = this.#failures.keys().filter((each) => each.startsWith(own))
    return messages.length < mostMessages ? key : `${own}\0and more`
  }
}
