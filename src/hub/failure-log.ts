import type { Logger } from 'pino'
import { after } from '../base/clock.ts'

/** A filter fails at one object as at the next, in a list of thousands. */
const togetherMs = 60_000

/** A message may name the object it is about: beyond so many of a filter it is no longer told what they say. */
const mostMessages = 8

interface Failing {
  readonly filter: string
  /** The latest. */
  err: unknown
  /** How often it has failed so since it was last told. */
  objects: number
  readonly over: Disposable
}

/**
 * Tells of filters that fail: of each filter and message at once, and then no more than once a minute, with the number of objects. The
 * metric counts each.
 */
export class FailureLog implements Disposable {
  readonly #log: Logger
  readonly #togetherMs: number
  readonly #failing = new Map<string, Failing>()

  /** `together`: for how many milliseconds failures are told together. */
  constructor(log: Logger, together = togetherMs) {
    this.#log = log
    this.#togetherMs = together
  }

  add(filter: string, err: unknown): void {
    const message = this.#keyOf(filter, err)
    const before = this.#failing.get(message)
    if (before) {
      before.err = err
      before.objects += 1
      return
    }
    this.#log.error({ filter, err, objects: 1 }, 'a filter failed')
    this.#begin(message, filter)
  }

  /** What was not told yet is. */
  [Symbol.dispose](): void {
    for (const [key, failing] of this.#failing) {
      failing.over[Symbol.dispose]()
      this.#failing.delete(key)
      this.#tell(failing)
    }
  }

  #begin(key: string, filter: string): void {
    const over = after(this.#togetherMs, () => {
      const failing = this.#failing.get(key)
      this.#failing.delete(key)
      if (!failing || failing.objects === 0) return
      this.#tell(failing)
      this.#begin(key, filter)
    })
    this.#failing.set(key, { filter, err: undefined, objects: 0, over })
  }

  #tell({ filter, err, objects }: Failing): void {
    if (objects > 0) this.#log.error({ filter, err, objects }, 'a filter failed')
  }

  #keyOf(filter: string, err: unknown): string {
    const key = `${filter}: ${err instanceof Error ? err.message : String(err)}`
    if (this.#failing.has(key)) return key
    const own = [...this.#failing.values()].filter((failing) => failing.filter === filter)
    return own.length < mostMessages ? key : `${filter}, and more`
  }
}
