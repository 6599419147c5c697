import type { Json, JsonObject } from './json.ts'
import { listAt } from './json-at.ts'

/** Where a pod says to which nodes it may go at all. */
export const requiredNodeAffinity = [
  'spec',
  'affinity',
  'nodeAffinity',
  'requiredDuringSchedulingIgnoredDuringExecution',
] as const

/**
 * A term without any condition matches no node
 * (k8s.io/component-helpers/scheduling/corev1/nodeaffinity).
 */
export const isEmptyTerm = (term: Json): boolean =>
  listAt(term, 'matchExpressions').length === 0 && listAt(term, 'matchFields').length === 0

/** The terms of which one has to match; those that match nothing are left out. */
export const alternativesOf = (pod: JsonObject): readonly Json[] =>
  listAt(pod, ...requiredNodeAffinity, 'nodeSelectorTerms').filter((term) => !isEmptyTerm(term))
