import { isList, isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt, withAt } from '../../api/kube/json-at.ts'
import { isEmptyTerm, requiredNodeAffinity } from '../../api/kube/node-affinity.ts'
import { hostNetworkLabel } from '../../api/kube/node-pool.ts'

const offHostNetwork = { key: hostNetworkLabel, operator: 'NotIn', values: ['true'] }

/**
 * A pod that does not come onto nodes of host-network pools: its required node affinity has this
 * condition in each term, since terms are alternatives. A term without any condition matches
 * nothing and would match nearly everything with this one; such terms stay as they are. So does an
 * empty list of terms, which the API server refuses. Applied again, nothing changes.
 */
export function keptOffHostNetwork(pod: JsonObject): JsonObject {
  const selector = valueAt(pod, ...requiredNodeAffinity)
  if (!isObject(selector)) {
    return withAt(pod, requiredNodeAffinity, {
      nodeSelectorTerms: [{ matchExpressions: [offHostNetwork] }],
    })
  }
  const terms = selector['nodeSelectorTerms']
  if (!isList(terms)) return pod
  return withAt(pod, [...requiredNodeAffinity, 'nodeSelectorTerms'], terms.map(termOffHostNetwork))
}

function termOffHostNetwork(term: Json): Json {
  const expressions = listAt(term, 'matchExpressions')
  if (!isObject(term) || isEmptyTerm(term) || expressions.some(saysSo)) return term
  return { ...term, matchExpressions: [...expressions, offHostNetwork] }
}

const saysSo = (expression: Json): boolean => {
  const values = listAt(expression, 'values')
  return (
    textAt(expression, 'key') === hostNetworkLabel &&
    textAt(expression, 'operator') === 'NotIn' &&
    values.length === 1 &&
    values[0] === 'true'
  )
}
