import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { requirementMet } from '../../src/api/kube/scheduling.ts'

/** A node as far as node selectors look at it. */
export interface SelectableNode {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

/** As the scheduler decides: terms are alternatives, and an empty one matches nothing. */
export const selects = (selector: Json | undefined, { name, labels }: SelectableNode): boolean =>
  listAt(selector, 'nodeSelectorTerms').some((term) => {
    const met = [
      ...listAt(term, 'matchExpressions').map((each) =>
        requirementMet(each, labels[textAt(each, 'key')]),
      ),
      ...listAt(term, 'matchFields').map((each) => requirementMet(each, name)),
    ]
    return met.length > 0 && met.every(Boolean)
  })

/** The scheduler's filter NodeAffinity. */
export function affinityAdmits(spec: JsonObject, node: SelectableNode): boolean {
  const wanted = Object.entries(objectAt(spec, 'nodeSelector'))
  const required = valueAt(
    spec,
    'affinity',
    'nodeAffinity',
    'requiredDuringSchedulingIgnoredDuringExecution',
  )
  return (
    wanted.every(([key, value]) => node.labels[key] === value) &&
    (required === undefined || selects(required, node))
  )
}
