import { LRUCache } from 'lru-cache'
import type { ObjectRow } from './object-row.ts'

/** Enough for what the programs of a node list, read again and again while the cloud is gone. */
const maxBytes = 16 * 1024 * 1024

/** What an entry takes beside its bytes. */
const overhead = 256

interface CachedBody {
  readonly stored: ObjectRow
  readonly bytes: Uint8Array
}

/**
 * Bytes of objects that were read and found to be whole. A row may be written anew, for another
 * version or another object, so they count only for the very version that they were read as; one
 * version of an object in one scope has the same bytes for ever.
 */
export class BodyCache {
  readonly #kept = new LRUCache<string, CachedBody>({
    maxSize: maxBytes,
    maxEntrySize: maxBytes / 8,
    sizeCalculation: ({ bytes }) => overhead + bytes.buffer.byteLength,
  })

  get(scope: number, stored: ObjectRow): Uint8Array | undefined {
    const found = this.#kept.get(`${scope}/${stored.id}`)
    return found && isSame(found.stored, stored) ? found.bytes : undefined
  }

  set(scope: number, stored: ObjectRow, bytes: Uint8Array): void {
    // Without a version nothing tells one state of an object from another.
    if (stored.resourceVersion === '') return
    this.#kept.set(`${scope}/${stored.id}`, { stored, bytes })
  }

  clear(): void {
    this.#kept.clear()
  }
}

const isSame = (a: ObjectRow, b: ObjectRow): boolean =>
  a === b ||
  (a.resourceVersion === b.resourceVersion &&
    a.uid === b.uid &&
    a.name === b.name &&
    a.namespace === b.namespace &&
    a.size === b.size)
