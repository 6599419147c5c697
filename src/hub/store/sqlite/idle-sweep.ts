import { after, every, now } from '../../../base/clock.ts'
import { nodeIdentity, unprovenIdentity, type Identity } from '../../../api/request/identity.ts'
import type { Operation } from './messages.ts'

const dayMs = 24 * 60 * 60_000
/** After opening: components show that they are still there first, and a start is not held up. */
const firstMs = 60_000
/** Callers remembered as used; whoever sends ever new tokens is not to fill the memory. */
const maxRemembered = 10_000

export interface IdleSweepParts {
  readonly write: (operation: Operation) => Promise<void>
  /** Identities that were not used for so long that they are to be forgotten. */
  readonly idle: () => readonly string[]
  /** Forgets a step of what is kept for it. */
  readonly forget: (identity: string) => Promise<void>
}

/** Notes which callers come back, once a day each, and forgets those that do not any more. */
export class IdleSweep implements Disposable {
  readonly #parts: IdleSweepParts
  readonly #used = new Set<Identity>()
  readonly #timers = new DisposableStack()

  constructor(parts: IdleSweepParts) {
    this.#parts = parts
    const run = (): void => void this.run().catch(() => undefined)
    this.#timers.use(after(firstMs, run))
    this.#timers.use(every(dayMs, run))
  }

  /** To be called whenever something is read or written for `identity`. */
  used(identity: Identity): void {
    // The node's is never swept, and what nobody has proved to be its own always.
    if (identity === nodeIdentity || identity === unprovenIdentity || this.#used.has(identity))
      return
    if (this.#used.size >= maxRemembered) this.#used.clear()
    this.#used.add(identity)
    this.#parts.write({ kind: 'mark-used', identity }).catch(() => this.#used.delete(identity))
  }

  /**
   * Resolves when what is idle on `day`, counted from the epoch, is forgotten; rejects with a
   * `StoreFailure`.
   */
  async run(day = Math.floor(now() / dayMs)): Promise<void> {
    this.#used.clear()
    await this.#parts.write({ kind: 'count-day', day })
    for (const identity of this.#parts.idle()) await this.#forget(identity)
  }

  async #forget(identity: string): Promise<void> {
    while (this.#parts.idle().includes(identity)) {
      await this.#parts.forget(identity)
    }
  }

  [Symbol.dispose](): void {
    this.#timers.dispose()
  }
}
