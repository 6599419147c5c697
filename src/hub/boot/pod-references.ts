import { LRUCache } from 'lru-cache'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { bootReferences, type PodKind, type PodReferences } from './references.ts'

interface ParsedPod {
  readonly resourceVersion: string
  readonly references: PodReferences | MalformedBody | undefined
}

/** More than run on a node. */
export const maxParsedPods = 1_000

/**
 * The references of the pods of a node, each pod parsed once per resource version: nearly every
 * change is one pod's status, and parsing the others again would be most of the work of a scan.
 */
export class PodReferencesByVersion {
  readonly #pods = new LRUCache<string, ParsedPod>({ max: maxParsedPods })

  /**
   * `undefined` for a pod that does not start again with the node. Throws a `MalformedBody`, also
   * again.
   */
  of(pod: ApiObject, kind: PodKind): PodReferences | undefined {
    const { uid, resourceVersion } = pod
    if (uid === '' || resourceVersion === '') return bootReferences(pod, kind)
    const id = `${kind.encoding} ${uid}`
    let known = this.#pods.get(id)
    if (known?.resourceVersion !== resourceVersion) {
      known = { resourceVersion, references: parsed(pod, kind) }
      this.#pods.set(id, known)
    }
    if (known.references instanceof MalformedBody) throw known.references
    return known.references
  }
}

function parsed(pod: ApiObject, kind: PodKind): ParsedPod['references'] {
  try {
    return bootReferences(pod, kind)
  } catch (cause) {
    if (cause instanceof MalformedBody) return cause
    throw cause
  }
}
