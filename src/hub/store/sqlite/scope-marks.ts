import type { Partition } from '../store.ts'
import type { Connection } from './connection.ts'
import type { ScopeKey } from './address.ts'
import type { Operation } from './messages.ts'

/** Scopes remembered; bounded for a caller that sends ever new tokens. */
const maxNoted = 10_000

/**
 * Marks a scope before the first write to it: one that is recorded for kubectl only is evicted
 * first. The mark is removed once another component reads.
 */
export class ScopeMarks {
  readonly #connection: Connection
  readonly #write: (operation: Operation) => Promise<void>
  /** Scopes written to by this process, and whether for kubectl only. */
  readonly #noted = new Map<string, boolean>()

  constructor(connection: Connection, write: (operation: Operation) => Promise<void>) {
    this.#connection = connection
    this.#write = write
  }

  /** Must be called before each write to the scope. */
  note(scope: ScopeKey, { evictFirst = false }: Partition): void {
    const text = JSON.stringify(scope)
    const noted = this.#noted.get(text)
    if (noted === false || noted === evictFirst) return
    if (this.#noted.size >= maxNoted) this.#noted.clear()
    this.#noted.set(text, evictFirst)
    const stored = this.#connection.read((reads) => reads.isInteractive(scope))
    if (evictFirst ? stored !== undefined : noted === undefined && stored !== true) return
    this.#write({ kind: 'mark-scope', scope, evictFirst }).catch(() => this.#noted.delete(text))
  }

  /** Scopes were deleted. */
  forget(): void {
    this.#noted.clear()
  }
}
