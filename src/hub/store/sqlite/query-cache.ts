import type { DatabaseSync } from 'node:sqlite'
import { LRUCache } from 'lru-cache'
import { prepare } from './statements.ts'

/** What is remembered weighs one for each row, at a few hundred bytes. */
const maxRows = 20_000

/**
 * What was read of a file, remembered for as long as nobody has written to it: SQLite tells a
 * connection by a number whether any other has (`PRAGMA data_version`), so that what is remembered
 * is what would be read.
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
