import { LRUCache } from 'lru-cache'
import { apiVersionOf, type GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'

/** What was made of an object: it was left alone, it was withheld, or it is now another. */
export type Verdict = 'left' | 'withheld' | ApiObject

interface Judged {
  /** A copy of what was judged: it would otherwise hold on to the chunk it came in. */
  readonly bytes: Buffer
  readonly verdict: Verdict
}

/** What a chain takes for a key, its value and the rest beside the bytes. */
const overhead = 512

/**
 * Verdicts on objects that come again and again, in lists, watches and to many clients. One version
 * of one object may be on its way in several forms and API versions, under the same uid: a verdict
 * counts only for the very bytes it was passed on.
 */
export class Remembered {
  readonly #verdicts: LRUCache<string, Judged>

  /** `most`: the bytes all of it may take. */
  constructor(most: number) {
    this.#verdicts = new LRUCache({
      maxSize: most,
      maxEntrySize: Math.max(1, Math.floor(most / 8)),
      sizeCalculation: ({ bytes, verdict }) =>
        overhead + bytes.length + (typeof verdict === 'object' ? verdict.bytes.byteLength : 0),
    })
  }

  get(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject): Verdict | undefined {
    const found = this.#verdicts.get(keyOf(chain, gvk, encoding, object))
    return found?.bytes.equals(object.bytes) ? found.verdict : undefined
  }

  set(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject, verdict: Verdict): void {
    // A row without an object: nothing tells it from another.
    if (object.resourceVersion === '') return
    const bytes = Buffer.from(object.bytes)
    this.#verdicts.set(keyOf(chain, gvk, encoding, object), { bytes, verdict })
  }
}

function keyOf(chain: number, gvk: GVK, encoding: Encoding, object: ApiObject): string {
  const { namespace, name, uid, resourceVersion } = object
  const kind = `${apiVersionOf(gvk)} ${gvk.kind} ${encoding}`
  return `${chain} ${kind} ${namespace}/${name} ${uid} ${resourceVersion}`
}
