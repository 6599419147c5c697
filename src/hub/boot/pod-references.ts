import { cursorOf } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { CachedCollection } from './kubelet-cache.ts'
import { referencesOf, whyNotForBoot, type PodReferences } from './references.ts'

interface ParsedPod {
  readonly resourceVersion: string
  readonly references: PodReferences | undefined
}

/**
 * What the pods of a node refer to, each read once for each of its versions: nearly every change is
 * of one pod's status, and going through the others again is most of the work of a look at all.
 */
export class PodReferencesByVersion {
  #present = new Map<string, ParsedPod>()
  #before = new Map<string, ParsedPod>()

  /** A look at all pods begins: what is not asked for until the next one is let go of then. */
  begin(): void {
    this.#before = this.#present
    this.#present = new Map()
  }

  /**
   * `undefined` for a pod that does not start again with the node, or that cannot be understood:
   * the boot verdict says so.
   */
  of(pod: ApiObject, kind: Pick<CachedCollection, 'encoding' | 'gvk'>): PodReferences | undefined {
    const { uid, resourceVersion } = pod
    if (uid === '' || resourceVersion === '') return read(pod, kind)
    const id = `${kind.encoding} ${uid}`
    const known = this.#before.get(id)
    const current =
      known?.resourceVersion === resourceVersion
        ? known
        : { resourceVersion, references: read(pod, kind) }
    this.#present.set(id, current)
    return current.references
  }
}

function read(
  object: ApiObject,
  { encoding, gvk }: Pick<CachedCollection, 'encoding' | 'gvk'>,
): PodReferences | undefined {
  try {
    const pod = cursorOf(encoding, gvk, object)
    return whyNotForBoot(pod) === undefined ? referencesOf(pod) : undefined
  } catch (cause) {
    if (cause instanceof MalformedBody) return undefined
    throw cause
  }
}
