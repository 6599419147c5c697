import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { bootReferences, type PodKind, type PodReferences } from './references.ts'

interface ParsedPod {
  readonly resourceVersion: string
  readonly references: PodReferences | undefined
}

/**
 * What the pods of a node refer to, each pod parsed once per resource version: nearly every change
 * is one pod's status, and parsing the others again would be most of the work of a scan.
 */
export class PodReferencesByVersion {
  #present = new Map<string, ParsedPod>()
  #before = new Map<string, ParsedPod>()

  /** Begins a scan of all pods. Pods that the scan does not request are dropped at the next one. */
  begin(): void {
    this.#before = this.#present
    this.#present = new Map()
  }

  /**
   * `undefined` for a pod that does not start again with the node, or that is malformed, which the
   * boot verdict reports.
   */
  of(pod: ApiObject, kind: PodKind): PodReferences | undefined {
    const { uid, resourceVersion } = pod
    if (uid === '' || resourceVersion === '') return parsed(pod, kind)
    const id = `${kind.encoding} ${uid}`
    const known = this.#before.get(id)
    const current =
      known?.resourceVersion === resourceVersion
        ? known
        : { resourceVersion, references: parsed(pod, kind) }
    this.#present.set(id, current)
    return current.references
  }
}

function parsed(pod: ApiObject, kind: PodKind): PodReferences | undefined {
  try {
    return bootReferences(pod, kind)
  } catch (cause) {
    if (cause instanceof MalformedBody) return undefined
    throw cause
  }
}
