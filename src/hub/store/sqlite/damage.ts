import { StoreFailure } from '../store.ts'
import type { Collections } from './collections.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { DamagedObject, Operation, PutDocument } from './messages.ts'
import type { ReportFault } from './faults.ts'

/**
 * What is remembered as damaged, so that it is reported once; a disk that forgets everything is not
 * to fill the memory.
 */
const maxMarks = 10_000

export interface DamageParts {
  readonly collections: Collections
  readonly write: (operation: Operation) => Promise<void>
  readonly report: ReportFault
}

/**
 * What was found damaged in this run: reported once, and set apart, so that it is known to nobody
 * any more.
 */
export class Damage {
  readonly #parts: DamageParts
  readonly #marks = new Set<string>()

  constructor(parts: DamageParts) {
    this.#parts = parts
  }

  /** Whether one of them is; it may not be set apart on the disk yet. */
  isAmong(objects: readonly DamagedObject[]): boolean {
    return this.#marks.size > 0 && objects.some((object) => this.#marks.has(markOf(object)))
  }

  /** The collections that held it know from now on that they lack something. */
  object(scope: ScopeKey, { id, namespace, name, resourceVersion }: DamagedObject): void {
    const { collections, write } = this.#parts
    const object = { id, namespace, name, resourceVersion }
    if (!this.#isNew(markOf(object), { scope, object })) return
    for (const state of collections.ofScope(scope)) state.damaged()
    write({ kind: 'quarantine', scope, object }).catch(() => undefined)
  }

  /** What it is at; the next list heals it. */
  head(collection: CollectionAddress): void {
    this.#isNew(JSON.stringify(collection), { collection })
  }

  /** What it was told last. */
  eventLog(eventLog: CollectionAddress): void {
    this.#isNew(JSON.stringify(eventLog), { eventLog })
  }

  document(document: PutDocument['key']): void {
    this.#isNew(JSON.stringify(document), { document })
  }

  /** It was written anew. */
  documentHealed(document: PutDocument['key']): void {
    this.#marks.delete(JSON.stringify(document))
  }

  #isNew(mark: string, cause: object): boolean {
    if (this.#marks.has(mark)) return false
    if (this.#marks.size >= maxMarks) this.#marks.clear()
    this.#marks.add(mark)
    this.#parts.report('damaged', new StoreFailure('what is stored is damaged', { cause }))
    return true
  }
}

const markOf = ({ id, namespace, name, resourceVersion }: DamagedObject): string =>
  JSON.stringify([id, namespace, name, resourceVersion])
