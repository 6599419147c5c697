import type { Json } from '../../../src/api/kube/json.ts'
import { listAt, textAt } from '../../../src/api/kube/json-at.ts'

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
    expressions.every((each) => requirementMet(each, labels)) &&
    fields.every((each) => requirementMet(each, { 'metadata.name': name }))
  )
}

function requirementMet(requirement: Json, labels: Readonly<Record<string, string>>): boolean {
  const value = labels[textAt(requirement, 'key')]
  const values = listAt(requirement, 'values')
  switch (textAt(requirement, 'operator')) {
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
