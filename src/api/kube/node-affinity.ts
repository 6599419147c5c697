import type { Json, JsonObject } from './json.ts'
import { listAt } from './json-at.ts'

/** The path of a pod's required node affinity. */
export const requiredNodeAffinity = [
  'spec',
  'affinity',
  'nodeAffinity',
  'requiredDuringSchedulingIgnoredDuringExecution',
] as const

/**
 * A term without conditions matches no node
 * (k8s.io/component-helpers/scheduling/corev1/nodeaffinity).
 */
export const isEmptyTerm = (term: Json): boolean =>
  listAt(term, 'matchExpressions').length === 0 && listAt(term, 'matchFields').length === 0

/**
 * The terms of required node affinity, of which one has to match; terms that match no node are left
 * out.
 */
export const alternativesOf = (pod: JsonObject): readonly Json[] =>
  listAt(pod, ...requiredNodeAffinity, 'nodeSelectorTerms').filter((term) => !isEmptyTerm(term))
