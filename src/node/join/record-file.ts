import { ownRights, type NodeFiles } from './node-files.ts'
import { MalformedRecord } from './record-fields.ts'

interface RecordFormat<T> {
  /** Throws `MalformedRecord`. */
  readonly parse: (text: string) => T
  /** The advice where it cannot be understood. */
  readonly advice: string
}

/** A file of JSON with nodehub's changes to a node; each write replaces it durably. */
export class RecordFile<T extends object> {
  readonly #files: NodeFiles
  readonly #path: string
  readonly #format: RecordFormat<T>

  constructor(files: NodeFiles, path: string, format: RecordFormat<T>) {
    this.#files = files
    this.#path = path
    this.#format = format
  }

  /**
   * `undefined` where there is none. Throws where it cannot be understood, with the remedy: it
   * never counts as missing.
   */
  read(): T | undefined {
    const file = this.#files.read(this.#path)
    if (file === undefined) return undefined
    try {
      return this.#format.parse(file.content.toString())
    } catch (cause) {
      if (!(cause instanceof MalformedRecord)) throw cause
      throw new Error(`${this.#path} cannot be used: ${cause.message}; ${this.#format.advice}`, {
        cause,
      })
    }
  }

  write(record: T): void {
    const content = Buffer.from(`${JSON.stringify(record, undefined, 2)}\n`)
    this.#files.write(this.#path, { content, ...ownRights(0o600) })
  }

  /** Removes it; a missing one is no failure. */
  remove(): void {
    this.#files.remove(this.#path)
  }
}
