import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { apiVersionOf, type GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'

/** The decision on an object: unchanged, withheld, or the edited object. */
export type Decision = 'left' | 'withheld' | ApiObject

/** Bytes `from` to `to` of an object are replaced. */
interface Splice {
  readonly from: number
  readonly to: number
  readonly inserted: Buffer
}

interface CachedDecision {
  /** Of the bytes that were decided on: a copy of them would be most of the cache. */
  readonly digest: string
  readonly decision: 'left' | 'withheld' | Splice
}

/** Estimated bytes of an entry: key, digest and bookkeeping. */
const overhead = 640

/**
 * Caches decisions on objects that recur in lists, watches and for many clients. One version of an
 * object may arrive in several encodings and API versions, under the same uid: a cached decision
 * applies only to identical bytes.
 */
export class DecisionCache {
  readonly #decisions: LRUCache<string, CachedDecision>

  /** `most`: the limit of the cache in bytes. */
  constructor(most: number) {
    this.#decisions = new LRUCache({
      maxSize: most,
      maxEntrySize: Math.max(1, Math.floor(most / 8)),
      sizeCalculation: ({ decision }) =>
        overhead + (typeof decision === 'object' ? decision.inserted.length : 0),
    })
  }

  get(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject): Decision | undefined {
    const cached = this.#decisions.get(keyOf(chain, gvk, encoding, object))
    if (!cached || cached.digest !== digestOf(object)) return undefined
    const { decision } = cached
    return typeof decision === 'object'
      ? { ...object, bytes: spliced(object.bytes, decision) }
      : decision
  }

  set(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject, decision: Decision): void {
    // A Table row without an object has no version to distinguish it.
    if (object.resourceVersion === '') return
    this.#decisions.set(keyOf(chain, gvk, encoding, object), {
      digest: digestOf(object),
      decision: typeof decision === 'object' ? spliceOf(object.bytes, decision.bytes) : decision,
    })
  }
}

const digestOf = ({ bytes }: ApiObject): string => hash('sha256', bytes, 'latin1')

/** What one span of `before` becomes in `after`: all between their common start and end. */
function spliceOf(before: Uint8Array, after: Uint8Array): Splice {
  const shorter = Math.min(before.length, after.length)
  let from = 0
  while (from < shorter && before[from] === after[from]) from += 1
  let kept = 0
  while (kept < shorter - from && before.at(-1 - kept) === after.at(-1 - kept)) kept += 1
  const inserted = Buffer.from(after.subarray(from, after.length - kept))
  return { from, to: before.length - kept, inserted }
}

const spliced = (bytes: Uint8Array, { from, to, inserted }: Splice): Buffer =>
  Buffer.concat([bytes.subarray(0, from), inserted, bytes.subarray(to)])

function keyOf(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject): string {
  const { namespace, name, uid, resourceVersion } = object
  const kind = `${apiVersionOf(gvk)} ${gvk.kind} ${encoding}`
  return `${chain} ${kind} ${namespace}/${name} ${uid} ${resourceVersion}`
}
