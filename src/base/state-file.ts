import { writeDurably } from './durable-file.ts'
import { readOwnFile } from './own-file.ts'

/**
 * A file with the newest state of something, written while the process goes on. One write is under
 * way at a time, and at most one more waits, for however many asked for it. Disposing waits for
 * what was asked for; what is asked for later is not written, as the file may be another process's
 * by then.
 */
export class StateFile implements AsyncDisposable {
  readonly #file: string
  readonly #content: () => string
  /** Resolves when everything asked for so far has been written, or could not be. */
  #settled: Promise<void> = Promise.resolve()
  /** The write that waits, and has not taken its content yet. */
  #next: Promise<void> | undefined
  #closed = false

  /** `content` gives the state when it is about to be written. */
  constructor(file: string, content: () => string) {
    this.#file = file
    this.#content = content
  }

  /**
   * Resolves when the state of now, or a later one, is on the disk. Rejects where it could not be
   * written.
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
 * The entries of a list that was kept in JSON; what is none of them is left out. A file that cannot
 * be read is as good as none.
 */
export function storedEntries<T>(file: string, isEntry: (entry: unknown) => entry is T): T[] {
  try {
    const entries = JSON.parse(String(readOwnFile(file))) as unknown[]
    return entries.filter(isEntry)
  } catch {
    return []
  }
}
