import type { DatabaseSync } from 'node:sqlite'

/**
 * Counts the events that refer to each body. Other references are found by name; an index of these
 * would be one more page to write for each event. A rollback undoes the changes of its transaction.
 */
export class EventBodies {
  readonly #counts = new Map<number, number>()
  /** References added (true) or removed by the current transaction, in order. */
  #changes: (readonly [id: number, added: boolean])[] = []

  constructor(db: DatabaseSync) {
    const rows = db.prepare('SELECT body, previous_body AS previous FROM told').iterate()
    for (const { body, previous } of rows) {
      this.#count(Number(body), 1)
      if (previous !== null) this.#count(Number(previous), 1)
    }
  }

  has(id: number): boolean {
    return this.#counts.has(id)
  }

  add(id: number): void {
    this.#count(id, 1)
    this.#changes.push([id, true])
  }

  /** Returns whether that was the last reference of an event. */
  remove(id: number): boolean {
    this.#count(id, -1)
    this.#changes.push([id, false])
    return !this.#counts.has(id)
  }

  committed(): void {
    this.#changes = []
  }

  rolledBack(): void {
    for (const [id, added] of this.#changes.splice(0)) this.#count(id, added ? -1 : 1)
  }

  #count(id: number, by: number): void {
    const count = (this.#counts.get(id) ?? 0) + by
    if (count === 0) this.#counts.delete(id)
    else this.#counts.set(id, count)
  }
}
