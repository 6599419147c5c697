import type { ObjectEvent } from '../../../api/codec/watch.ts'
import { StoreFailure, type CollectionKey, type StoredChanges } from '../store.ts'
import { addressOf, type ScopeKey } from './address.ts'
import type { Reads, StoredEvent } from './reads.ts'
import type { ObjectRow } from './object-row.ts'
import { BatchReader } from './batch-reader.ts'
import type { ViewParts } from './view.ts'

/** A body of an event is damaged: the event cannot be skipped. */
class Incomplete extends StoreFailure {}

/** Reads the persisted event logs of collections. */
export class History {
  readonly #parts: ViewParts

  constructor(parts: ViewParts) {
    this.#parts = parts
  }

  /** As `ObjectStore.changes`. Throws SQLite's errors. */
  changes(reads: Reads, key: CollectionKey, since: string): StoredChanges | 'expired' | undefined {
    const { collections, damage, snapshots } = this.#parts
    const address = addressOf(key)
    if (!collections.serves(address)) return undefined
    const found = reads.atOnce(() => {
      const head = reads.head(address)
      return head?.whole ? { head, events: reads.events(head, since) } : undefined
    })
    if (!found) return undefined
    const { gvk, extra, version: resourceVersion } = found.head
    const { events = 'expired' } = found
    if (events === 'damaged') damage.eventLog(address)
    if (typeof events === 'string') return 'expired'
    const batches = new BatchReader(events, snapshots.read(), (batch) =>
      this.#batch(address.scope, batch),
    )
    try {
      return { gvk, extra, resourceVersion, batches: batches.readAhead() }
    } catch (failure) {
      batches.return()
      if (failure instanceof Incomplete) return 'expired'
      throw failure
    }
  }

  #batch(scope: ScopeKey, batch: readonly StoredEvent[]): readonly ObjectEvent[] {
    const wanted = new Map<number, ObjectRow>()
    for (const { object, previous } of batch) {
      wanted.set(object.id, object)
      if (previous) wanted.set(previous.id, previous)
    }
    const ids = [...wanted.keys()]
    const objects = this.#parts.bodies.batch(scope, [...wanted.values()])
    if (objects.length < ids.length) throw new Incomplete('an event is damaged')
    const byId = new Map(ids.map((id, index) => [id, objects[index]]))
    return batch.flatMap(({ type, object: { id }, previous }) => {
      const object = byId.get(id)
      const before = previous && byId.get(previous.id)
      return object ? [{ type, object, ...(before && { previous: before }) }] : []
    })
  }
}
