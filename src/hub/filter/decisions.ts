import { cursorOf } from '../../api/codec/cursor.ts'
import { applyEdits } from '../../api/codec/edit.ts'
import { isMirrorPod } from '../../api/codec/mirror-pod.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { ActiveFilter } from './chain.ts'

/** The decision of one filter on an object. */
export interface FilterDecision {
  readonly filter: string
  readonly decision: 'left' | 'edited' | 'withheld' | 'failed'
}

export interface DecidedObject {
  /** In order, up to the filter that withholds the object. */
  readonly decisions: readonly FilterDecision[]
  /** `undefined`: it is withheld. */
  readonly object: ApiObject | undefined
}

/**
 * The decisions of filters on an object now, one by one, for people. Nothing is settled, cached or
 * counted: a pod without a verdict on its network stays without.
 */
export function decisionsOn(
  active: readonly ActiveFilter[],
  gvk: GVK,
  encoding: Encoding,
  object: ApiObject,
): DecidedObject {
  const decisions: FilterDecision[] = []
  if (gvk.kind === 'Pod' && gvk.group === '' && isMirrorPod(cursorOf(encoding, gvk, object)))
    return { decisions, object }
  let result = object
  for (const { definition, filter } of active) {
    const { name, onError } = definition
    try {
      const decide = typeof filter === 'function' ? filter : filter.filter
      const decision = decide(cursorOf(encoding, gvk, result))
      if (decision === 'withhold') {
        decisions.push({ filter: name, decision: 'withheld' })
        return { decisions, object: undefined }
      }
      const edited = decision === 'leave' ? result : applyEdits(encoding, gvk, result, decision)
      decisions.push({ filter: name, decision: edited === result ? 'left' : 'edited' })
      result = edited
    } catch {
      decisions.push({ filter: name, decision: 'failed' })
      if (onError === 'withhold') return { decisions, object: undefined }
    }
  }
  return { decisions, object: result }
}
