import { LRUCache } from 'lru-cache'
import { cursorOf, type Cursor } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import {
  referencesOf,
  referenceSources,
  startsAtBoot,
  type PodKind,
  type PodReferences,
} from './references.ts'

interface ParsedPod {
  readonly resourceVersion: string
  readonly startsAtBoot: boolean
  /** Identifies what `references` were made of. */
  readonly source: string
  readonly references: PodReferences | MalformedBody
}

/** More than run on a node. */
const maxParsedPods = 1_000

/**
 * The references of the pods of a node, each pod parsed again only where its references may have
 * changed: nearly every change is one of a pod's status.
 */
export class KnownPodReferences {
  readonly #pods = new LRUCache<string, ParsedPod>({ max: maxParsedPods })

  of(pod: ApiObject, kind: PodKind): ParsedPod {
    const id = `${kind.encoding} ${pod.uid}`
    const known = this.#pods.get(id)
    if (known?.resourceVersion === pod.resourceVersion) return known
    const parsed = parse(pod, kind, known)
    if (pod.uid !== '' && pod.resourceVersion !== '') this.#pods.set(id, parsed)
    return parsed
  }
}

function parse(
  object: ApiObject,
  { encoding, gvk }: PodKind,
  known: ParsedPod | undefined,
): ParsedPod {
  const { resourceVersion } = object
  let [starts, source] = [true, '']
  try {
    const pod = cursorOf(encoding, gvk, object)
    starts = startsAtBoot(pod)
    source = sourceOf(pod)
    const references = known?.source === source ? known.references : referencesOf(pod)
    return { resourceVersion, startsAtBoot: starts, source, references }
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    return { resourceVersion, startsAtBoot: starts, source, references: cause }
  }
}

const sourceOf = (pod: Cursor): string => referenceSources.map((path) => pod.digest(path)).join()
