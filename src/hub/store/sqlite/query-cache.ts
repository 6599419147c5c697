import type { DatabaseSync } from 'node:sqlite'
import { LRUCache } from 'lru-cache'
import { prepare } from './statements.ts'

/** The weight of an entry is its number of rows, at a few hundred bytes each. */
const maxRows = 20_000

/**
 * Results of queries, valid until the database is written to: `PRAGMA data_version` changes with
 * each commit of another connection, so that an entry equals what the query would return.
 */
export class QueryCache {
  readonly #dataVersion
  readonly #known = new LRUCache<string, object>({
    maxSize: maxRows,
    sizeCalculation: (value) => 1 + (Array.isArray(value) ? value.length : 0),
  })
  #seen: unknown

  constructor(db: DatabaseSync) {
    this.#dataVersion = prepare(db, 'PRAGMA data_version')
  }

  get<T extends object>(key: string, read: () => T): T {
    const [seen] = this.#dataVersion.get() ?? []
    if (seen !== this.#seen) {
      this.#known.clear()
      this.#seen = seen
    }
    const known = this.#known.get(key) as T | undefined
    if (known) return known
    const value = read()
    this.#known.set(key, value)
    return value
  }

  clear(): void {
    this.#known.clear()
  }
}
