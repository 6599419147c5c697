import { LRUCache } from 'lru-cache'
import { cursorOf } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import { referencesOf, startsAtBoot, type PodKind, type PodReferences } from './references.ts'

interface ParsedPod {
  readonly resourceVersion: string
  readonly startsAtBoot: boolean
  readonly references: PodReferences | MalformedBody
}

/** More than run on a node. */
const maxParsedPods = 1_000

/**
 * The references of the pods of a node, each pod parsed once per resource version: nearly every
 * change is one pod's status, and parsing the others again would be most of the work of a scan.
 */
export class PodReferencesByVersion {
  readonly #pods = new LRUCache<string, ParsedPod>({ max: maxParsedPods })

  of(pod: ApiObject, kind: PodKind): ParsedPod {
    const id = `${kind.encoding} ${pod.uid}`
    const known = this.#pods.get(id)
    if (known?.resourceVersion === pod.resourceVersion) return known
    const parsed = parse(pod, kind)
    if (pod.uid !== '' && pod.resourceVersion !== '') this.#pods.set(id, parsed)
    return parsed
  }
}

function parse(object: ApiObject, { encoding, gvk }: PodKind): ParsedPod {
  const { resourceVersion } = object
  let starts = true
  try {
    const pod = cursorOf(encoding, gvk, object)
    starts = startsAtBoot(pod)
    return { resourceVersion, startsAtBoot: starts, references: referencesOf(pod) }
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    return { resourceVersion, startsAtBoot: starts, references: cause }
  }
}
