import { writeDurably } from './durable-file.ts'
import { readOwnFile } from './own-file.ts'

/**
 * A file with the latest state, written while the process runs. One write runs at a time, and at
 * most one more is pending for all requests. Disposing waits for requested writes; later requests
 * are ignored, as the file may belong to another process by then.
 */
export class StateFile implements AsyncDisposable {
  readonly #file: string
  readonly #content: () => string
  /** Resolves when all requested writes have finished or failed. */
  #settled: Promise<void> = Promise.resolve()
  /** The pending write, which has not read its content yet. */
  #next: Promise<void> | undefined
  #closed = false

  /** `content` returns the state; it is called just before the write. */
  constructor(file: string, content: () => string) {
    this.#file = file
    this.#content = content
  }

  /**
   * Resolves when the current state, or a later one, is on the disk. Rejects if the write fails.
   */
  write(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    if (this.#next) return this.#next
    const next = this.#settled.then(() => {
      this.#next = undefined
      return writeDurably(this.#file, this.#content())
    })
    this.#next = next
    this.#settled = next.catch(() => undefined)
    return next
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    return this.#settled
  }
}

/**
 * The entries of a list that was stored in JSON, without invalid ones. An unreadable file has none.
 */
export function storedEntries<T>(file: string, isEntry: (entry: unknown) => entry is T): T[] {
  try {
    const entries = JSON.parse(String(readOwnFile(file))) as unknown[]
    return entries.filter(isEntry)
  } catch {
    return []
  }
}
