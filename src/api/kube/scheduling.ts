import { isObject, type Json, type JsonObject } from './json.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt } from './json-at.ts'
import { requiredNodeAffinity } from './node-affinity.ts'

/** A node as far as node selectors look at it. */
export interface SelectableNode {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

/**
 * Whether a node selector matches, as the scheduler decides it (component-helpers
 * scheduling/corev1/nodeaffinity).
 */
export const selects = (selector: Json | undefined, node: SelectableNode): boolean =>
  listAt(selector, 'nodeSelectorTerms').some((term) => termMatches(term, node))

function termMatches(term: Json, { name, labels }: SelectableNode): boolean {
  const expressions = listAt(term, 'matchExpressions')
  const fields = listAt(term, 'matchFields')
  if (expressions.length + fields.length === 0) return false
  return (
    expressions.every((each) => labelsMeet(each, labels)) &&
    fields.every((each) => labelsMeet(each, { 'metadata.name': name }))
  )
}

function labelsMeet(requirement: Json, labels: Readonly<Record<string, string>>): boolean {
  const key = textAt(requirement, 'key')
  return requirementMet(requirement, Object.hasOwn(labels, key) ? labels[key] : undefined)
}

/** Whether the value of the key that a selector's requirement names meets it; `undefined`: none. */
export function requirementMet(requirement: Json, value: string | undefined): boolean {
  const values = listAt(requirement, 'values')
  switch (optionalTextAt(requirement, 'operator')) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0])
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return false
  }
}

/** The scheduler's filter NodeAffinity: node selector and required node affinity of a pod. */
export function affinityAdmits(spec: JsonObject, node: SelectableNode): boolean {
  const labels = node.labels
  for (const [key, value] of Object.entries(objectAt(spec, 'nodeSelector')))
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return false
  const required = valueAt({ spec }, ...requiredNodeAffinity)
  return !isObject(required) || selects(required, node)
}

/** Whether a toleration of the pod covers the taint (k8s.io/component-helpers). */
export const isTolerated = (taint: JsonObject, spec: JsonObject): boolean =>
  listAt(spec, 'tolerations').some((toleration) => {
    const [key, operator, value, effect] = ['key', 'operator', 'value', 'effect'].map(
      (member) => optionalTextAt(toleration, member) ?? '',
    )
    if (effect !== '' && effect !== taint['effect']) return false
    if (key === '') return operator === 'Exists'
    return key === taint['key'] && (operator === 'Exists' || value === (taint['value'] ?? ''))
  })
