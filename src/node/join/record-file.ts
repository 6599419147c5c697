import { isObject, parseJson } from '../../api/kube/json.ts'
import { ownRights, type NodeFiles } from './node-files.ts'

/** A file of JSON with nodehub's changes to a node; each write replaces it durably. */
export class RecordFile<T extends { readonly version: 1 }> {
  readonly #files: NodeFiles
  readonly #path: string
  readonly #advice: string

  /** `advice`: what to do where it cannot be understood. */
  constructor(files: NodeFiles, path: string, advice: string) {
    this.#files = files
    this.#path = path
    this.#advice = advice
  }

  /**
   * `undefined` where there is none. Throws where it cannot be understood, with the remedy: it
   * never counts as missing. What is in it is believed: only root writes there.
   */
  read(): T | undefined {
    const file = this.#files.read(this.#path)
    if (file === undefined) return undefined
    const record = parseJson(file.content.toString())
    if (isObject(record) && record['version'] === 1) return record as unknown as T
    const why = isObject(record) ? 'it is of another release of nodehub' : 'it is no JSON object'
    throw new Error(`${this.#path} cannot be used: ${why}; ${this.#advice}`)
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
