import { writeDurably } from './durable-file.ts'
import { FreshRead } from './fresh-read.ts'
import { readOwnFile } from './own-file.ts'

/**
 * A file with the latest state, written while the process runs. One write runs at a time, and at
 * most one more is pending for all requests. Disposing waits for requested writes; later requests
 * are ignored, as the file may belong to another process by then.
 */
export class StateFile implements AsyncDisposable {
  readonly #writes: FreshRead<void>
  /** The last requested write, before which all others have ended. */
  #last: Promise<void> = Promise.resolve()
  #closed = false

  /** `content` returns the state; it is called just before the write. */
  constructor(file: string, content: () => string) {
    this.#writes = new FreshRead(() => writeDurably(file, content()))
  }

  /**
   * Resolves when the current state, or a later one, is on the disk. Rejects if the write fails.
   */
  async write(): Promise<void> {
    if (this.#closed) return
    this.#last = this.#writes.get()
    await this.#last
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await this.#last.catch(() => undefined)
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
