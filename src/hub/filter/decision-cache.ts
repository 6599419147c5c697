import { LRUCache } from 'lru-cache'
import { apiVersionOf, type GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'

/** The decision on an object: unchanged, withheld, or the edited object. */
export type Decision = 'left' | 'withheld' | ApiObject

interface CachedDecision {
  /**
   * A copy of the filtered bytes: a reference would retain the whole chunk that they arrived in.
   */
  readonly bytes: Buffer
  readonly decision: Decision
}

/** Estimated bytes of an entry besides the object's own: key, value and bookkeeping. */
const overhead = 512

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
      sizeCalculation: ({ bytes, decision }) =>
        overhead + bytes.length + (typeof decision === 'object' ? decision.bytes.byteLength : 0),
    })
  }

  get(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject): Decision | undefined {
    const cached = this.#decisions.get(keyOf(chain, gvk, encoding, object))
    return cached?.bytes.equals(object.bytes) ? cached.decision : undefined
  }

  set(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject, decision: Decision): void {
    // A Table row without an object has no version to distinguish it.
    if (object.resourceVersion === '') return
    const bytes = Buffer.from(object.bytes)
    this.#decisions.set(keyOf(chain, gvk, encoding, object), { bytes, decision })
  }
}

function keyOf(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject): string {
  const { namespace, name, uid, resourceVersion } = object
  const kind = `${apiVersionOf(gvk)} ${gvk.kind} ${encoding}`
  return `${chain} ${kind} ${namespace}/${name} ${uid} ${resourceVersion}`
}
