import { isObject, parseJson } from '../../api/kube/json.ts'
import { ownRights, type NodeFiles } from './node-files.ts'

/** A folder with nodehub's changes to a node, in a file of JSON; each write replaces it durably. */
export class RecordFile<T extends { readonly version: 1 }> {
  protected readonly files: NodeFiles
  protected readonly folder: string
  readonly #advice: string

  /** `advice`: what to do where it cannot be understood. */
  constructor(files: NodeFiles, folder: string, advice: string) {
    this.files = files
    this.folder = folder
    this.#advice = advice
  }

  get #path(): string {
    return `${this.folder}/record.json`
  }

  /**
   * `undefined` where there is none. Throws where it cannot be understood, with the remedy: it
   * never counts as missing. What is in it is believed: only root writes there.
   */
  read(): T | undefined {
    const file = this.files.read(this.#path)
    if (file === undefined) return undefined
    const record = parseJson(file.content.toString())
    if (isObject(record) && record['version'] === 1) return record as unknown as T
    const why = isObject(record) ? 'it is of another release of nodehub' : 'it is no JSON object'
    throw new Error(`${this.#path} cannot be used: ${why}; ${this.#advice}`)
  }

  write(record: T): void {
    this.files.ownFolder(this.folder, 0o700)
    const content = Buffer.from(`${JSON.stringify(record, undefined, 2)}\n`)
    this.files.write(this.#path, { content, ...ownRights(0o600) })
  }

  /** Removes the record, then the folder if it is empty. A missing one is no failure. */
  forget(): void {
    this.files.remove(this.#path)
    this.files.removeFolder(this.folder)
  }
}
