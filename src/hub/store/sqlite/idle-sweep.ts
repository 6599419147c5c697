import { after, every, now } from '../../../base/clock.ts'
import { nodeIdentity, unprovenIdentity, type Identity } from '../../../api/request/identity.ts'
import type { Operation } from './messages.ts'

const dayMs = 24 * 60 * 60_000
/**
 * After opening: components show first that they are still in use, and the start is not slowed
 * down.
 */
const firstMs = 60_000
/** Identities remembered as used; bounded for a caller that sends ever new tokens. */
const maxRemembered = 10_000

export interface IdleSweepParts {
  readonly write: (operation: Operation) => Promise<void>
  /** Identities that were not used for so long that their data is to be deleted. */
  readonly idle: () => readonly string[]
  /** Deletes one step of the data of an identity. */
  readonly forget: (identity: string) => Promise<void>
  readonly onFailed: (cause: unknown) => void
}

/**
 * Notes once a day which identities are in use, and deletes the data of the others after a while.
 */
export class IdleSweep implements Disposable {
  readonly #parts: IdleSweepParts
  readonly #used = new Set<Identity>()
  readonly #timers = new DisposableStack()

  constructor(parts: IdleSweepParts) {
    this.#parts = parts
    const run = (): void => void this.run().catch(parts.onFailed)
    this.#timers.use(after(firstMs, run))
    this.#timers.use(every(dayMs, run))
  }

  /** Must be called for each read and write of `identity`. */
  used(identity: Identity): void {
    // The node's data is never deleted, and unauthenticated callers' data always.
    if (identity === nodeIdentity || identity === unprovenIdentity || this.#used.has(identity))
      return
    if (this.#used.size >= maxRemembered) this.#used.clear()
    this.#used.add(identity)
    this.#parts.write({ kind: 'mark-used', identity }).catch((cause: unknown) => {
      this.#used.delete(identity)
      this.#parts.onFailed(cause)
    })
  }

  /**
   * Resolves when the data that is idle on `day`, counted from the epoch, is deleted; rejects with
   * a `StoreFailure`.
   */
  async run(day = Math.floor(now() / dayMs)): Promise<void> {
    this.#used.clear()
    await this.#parts.write({ kind: 'count-day', day })
    for (const identity of this.#parts.idle()) {
      while (this.#parts.idle().includes(identity)) await this.#parts.forget(identity)
    }
  }

  [Symbol.dispose](): void {
    this.#timers.dispose()
  }
}
