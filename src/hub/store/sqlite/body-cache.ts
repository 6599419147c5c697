import { LRUCache } from 'lru-cache'
import type { ObjectRow } from './object-row.ts'

/** Enough for what the components of a node list again and again offline. */
const maxBytes = 16 * 1024 * 1024

/** The size of an entry beside its bytes. */
const overhead = 256

interface CachedBody {
  readonly stored: ObjectRow
  readonly bytes: Uint8Array
}

/**
 * Verified bodies. A row may be used again for another version or object, so an entry counts only
 * for the version that it was read as.
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
    // Without a version, states of an object cannot be distinguished.
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
