import { hash } from 'node:crypto'
import type { JsonObject, Json } from '../../api/kube/json.ts'
import { objectAt, withAt } from '../../api/kube/json-at.ts'

/**
 * On an owner while its patch is rolled out: the merge patch that takes it back. So an exit plan
 * that was interrupted can go on, or be taken back by hand.
 */
export const beforeAnnotation = 'nodehub.io/before-exit-plan'

export const annotated = (value: string | null): JsonObject => ({
  metadata: { annotations: { [beforeAnnotation]: value } },
})

/** A spec without the count that an autoscaler changes. */
export const specOf = (object: JsonObject | undefined): Json =>
  withAt(objectAt(object, 'spec'), ['replicas'], undefined)

/** A digest that shows whether a spec is still the one that was patched. */
export const digestOf = (object: JsonObject | undefined): string =>
  hash('sha256', JSON.stringify(specOf(object)))
