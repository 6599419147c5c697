import { StoreFailure } from '../store.ts'
import { hasQuota } from './quotas.ts'

/**
 * Counts the staged bytes of each identity. Staged objects cannot be evicted, and a caller that
 * reads many lists slowly must not fill the store with them.
 */
export class Staging {
  readonly #maxBytes: number
  readonly #bytes = new Map<string, number>()

  /** `maxBytes`: of one identity. */
  constructor(mostBytes: number) {
    this.#maxBytes = mostBytes
  }

  /** Throws a `StoreFailure` where the identity has too much staged. */
  add(identity: string, bytes: number): void {
    const staged = (this.#bytes.get(identity) ?? 0) + bytes
    if (hasQuota(identity) && staged > this.#maxBytes) {
      throw new StoreFailure(
        `the lists in progress of ${identity} take more than ${this.#maxBytes} bytes`,
      )
    }
    this.#bytes.set(identity, staged)
  }

  /** They became members, or were given up. */
  remove(identity: string, bytes: number): void {
    const left = (this.#bytes.get(identity) ?? 0) - bytes
    if (left > 0) this.#bytes.set(identity, left)
    else this.#bytes.delete(identity)
  }
}
