import type { Partition } from '../store.ts'
import type { Connection } from './connection.ts'
import type { ScopeKey } from './address.ts'
import type { Operation } from './messages.ts'

/** Scopes remembered as noted; whoever sends ever new tokens is not to fill the memory. */
const maxNoted = 10_000

/**
 * Notes for whom a scope is recorded, before the first write to it: where nobody else has anything,
 * what a person at a console asked for is marked, and goes first where room is needed; it is not
 * marked any more once a program asks.
 */
export class ScopeMarks {
  readonly #connection: Connection
  readonly #write: (operation: Operation) => Promise<void>
  /** Scopes written to in this run, and whether only for a person. */
  readonly #noted = new Map<string, boolean>()

  constructor(connection: Connection, write: (operation: Operation) => Promise<void>) {
    this.#connection = connection
    this.#write = write
  }

  /** To be called before anything is written to the scope. */
  note(scope: ScopeKey, { interactive = false }: Partition): void {
    const text = JSON.stringify(scope)
    const noted = this.#noted.get(text)
    if (noted === false || noted === interactive) return
    if (this.#noted.size >= maxNoted) this.#noted.clear()
    this.#noted.set(text, interactive)
    const stored = this.#connection.read((reads) => reads.isInteractive(scope))
    if (interactive ? stored !== undefined : noted === undefined && stored !== true) return
    this.#write({ kind: 'mark-scope', scope, interactive: interactive }).catch(() =>
      this.#noted.delete(text),
    )
  }

  /** Scopes are gone. */
  forget(): void {
    this.#noted.clear()
  }
}
