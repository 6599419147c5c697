import type { Json, JsonObject } from './json.ts'
import { listAt, optionalTextAt } from './json-at.ts'

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
