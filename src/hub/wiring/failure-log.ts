import type { Logger } from 'pino'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'

/** A filter fails at one object as at the next, in a list of thousands. */
const togetherMs = 60_000

/**
 * A message may name the object it is about: beyond so many of a filter it is no longer told what
 * they say.
 */
const mostMessages = 8

/**
 * Tells of filters that fail: of each filter and message at once, and then no more than once a
 * minute, with the number of objects. The metric counts each.
 */
export class FailureLog implements Disposable {
  readonly #failures: RepeatLimiter<{ readonly filter: string; readonly err: unknown }>

  /** `together`: for how many milliseconds failures are told together. */
  constructor(log: Logger, together = togetherMs) {
    this.#failures = new RepeatLimiter(together, (failure, objects) =>
      log.error({ ...failure, objects }, 'a filter failed'),
    )
  }

  add(filter: string, err: unknown): void {
    this.#failures.add(this.#keyOf(filter, err), { filter, err })
  }

  /** What was not told yet is. */
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
