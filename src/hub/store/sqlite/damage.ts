import { StoreFailure } from '../store.ts'
import type { Collections } from './collections.ts'
import type { CollectionAddress, ScopeKey } from './address.ts'
import type { DamagedObject, Operation, PutDocument } from './messages.ts'
import type { ReportFault } from './faults.ts'

/**
 * Objects remembered as damaged, so that each is reported once. Bounded for a disk that loses
 * everything.
 */
const maxMarks = 10_000

const message = 'stored data is damaged: it is not served until an API server sends it again'

export interface DamageParts {
  readonly collections: Collections
  readonly write: (operation: Operation) => Promise<void>
  readonly report: ReportFault
}

/** Damage found by this process: each reported once, and quarantined. */
export class Damage {
  readonly #parts: DamageParts
  readonly #marks = new Set<string>()

  constructor(parts: DamageParts) {
    this.#parts = parts
  }

  /** Whether one of them is damaged; it may not be quarantined on the disk yet. */
  isAmong(objects: readonly DamagedObject[]): boolean {
    return this.#marks.size > 0 && objects.some((object) => this.#marks.has(markOf(object)))
  }

  /** Quarantines an object, and marks its collections as incomplete. */
  object(scope: ScopeKey, { id, namespace, name, resourceVersion }: DamagedObject): void {
    const { collections, write } = this.#parts
    const object = { id, namespace, name, resourceVersion }
    if (!this.#isNew(markOf(object), { scope, object })) return
    for (const state of collections.ofScope(scope)) state.damaged()
    write({ kind: 'quarantine', scope, object }).catch(() => undefined)
  }

  /** A collection's version is damaged; the next list repairs it. */
  head(collection: CollectionAddress): void {
    this.#isNew(JSON.stringify(collection), { collection })
  }

  /** A collection's event log is damaged. */
  eventLog(eventLog: CollectionAddress): void {
    this.#isNew(JSON.stringify(eventLog), { eventLog })
  }

  document(document: PutDocument['key']): void {
    this.#isNew(JSON.stringify(document), { document })
  }

  /** The document was written again. */
  documentHealed(document: PutDocument['key']): void {
    this.#marks.delete(JSON.stringify(document))
  }

  #isNew(mark: string, cause: object): boolean {
    if (this.#marks.has(mark)) return false
    if (this.#marks.size >= maxMarks) this.#marks.clear()
    this.#marks.add(mark)
    this.#parts.report('damaged', new StoreFailure(message, { cause }))
    return true
  }
}

const markOf = ({ id, namespace, name, resourceVersion }: DamagedObject): string =>
  JSON.stringify([id, namespace, name, resourceVersion])
