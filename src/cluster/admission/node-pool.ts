import type { GVR } from '../../api/kube/gvk.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt, withAt } from '../../api/kube/json-at.ts'
import {
  alwaysShared,
  hostNetworkLabel,
  nodePoolLabel,
  poolTypeLabel,
} from '../../api/kube/node-pool.ts'
import { forbidden, invalid, type Status, type StatusCause } from '../../api/kube/status.ts'
import { wrongAnnotations, wrongName, wrongValue } from './names.ts'

/**
 * A new pool (v1beta2) with defaults for the fields that its author left out, and without a status.
 */
export function defaultedPool(pool: JsonObject): JsonObject {
  const type = textAt(pool, 'spec', 'type') || 'Edge'
  const replicas = valueAt(pool, 'spec', 'leaderReplicas')
  const shared = listAt(pool, 'spec', 'poolScopeMetadata')
  const missing = alwaysShared.filter((each) => !shared.some((other) => isShared(other, each)))
  const defaults: readonly (readonly [readonly string[], Json])[] = [
    [['spec', 'type'], type],
    [['metadata', 'labels', poolTypeLabel], type.toLowerCase()],
    [
      ['spec', 'leaderElectionStrategy'],
      textAt(pool, 'spec', 'leaderElectionStrategy') || 'random',
    ],
    [['spec', 'leaderReplicas'], typeof replicas === 'number' && replicas > 0 ? replicas : 1],
    [
      ['spec', 'poolScopeMetadata'],
      [...shared, ...missing.map((each) => ({ ...each }))],
    ],
  ]
  const filled = defaults.reduce((sum, [path, value]) => withAt(sum, path, value), pool)
  return withAt(filled, ['status'], undefined)
}

const isShared = (other: Json, { group, version, resource }: GVR): boolean =>
  textAt(other, 'group') === group &&
  textAt(other, 'version') === version &&
  textAt(other, 'resource') === resource

/** Why a new pool is refused. */
export function validateNewPool(pool: JsonObject): Status | undefined {
  const causes = poolProblems(pool)
  return causes.length === 0
    ? undefined
    : invalid(sentence(pool, 'invalid', causes), details(pool, causes))
}

/**
 * Why a change of a pool is refused. An existing problem that the change leaves as it is does not
 * block it.
 */
export function validatePoolUpdate(old: JsonObject, pool: JsonObject): Status | undefined {
  const before = new Set(poolProblems(old).map(({ message }) => message))
  const causes = poolProblems(pool).filter(({ message }) => !before.has(message))
  return causes.length === 0
    ? undefined
    : forbidden(sentence(pool, 'forbidden', causes), details(pool, causes))
}

/** Why a pool is not deleted: `nodes` are in it, or their number is unknown. */
export function validatePoolDeletion(
  pool: JsonObject,
  nodes: number | 'unknown',
): Status | undefined {
  if (nodes === 0) return undefined
  const message =
    nodes === 'unknown'
      ? 'whether nodes are in the pool cannot be found out now'
      : `${nodes} ${nodes === 1 ? 'node is' : 'nodes are'} in the pool: take them out of it or delete them first`
  const causes = [{ reason: 'FieldValueForbidden', message, field: 'metadata.name' }]
  return forbidden(sentence(pool, 'forbidden', causes), details(pool, causes))
}

const sentence = (pool: JsonObject, what: string, causes: readonly StatusCause[]): string =>
  `nodepools.apps.openyurt.io "${textAt(pool, 'metadata', 'name')}" is ${what}: ` +
  causes.map(({ field, message }) => `${field}: ${message}`).join(', ')

const details = (pool: JsonObject, causes: readonly StatusCause[]) => ({
  name: textAt(pool, 'metadata', 'name'),
  group: 'apps.openyurt.io',
  kind: 'nodepools',
  causes,
})

/**
 * The definition of pools has the rules for all else: types, words, and the fields that a pool
 * keeps. It does not see that a pool which was written in v1alpha1 has a host network.
 */
function poolProblems(pool: JsonObject): StatusCause[] {
  const onHost = valueAt(pool, 'spec', 'hostNetwork') === true
  return [
    ...(textAt(pool, 'spec', 'type') === 'Cloud' && onHost
      ? [problem('hostNetwork', 'a pool of type Cloud has no host network: use type: Edge')]
      : []),
    ...wrongAnnotations(objectAt(pool, 'spec', 'annotations')).map((message) =>
      problem('annotations', message),
    ),
    ...wrongLabels(objectAt(pool, 'spec', 'labels')).map((message) => problem('labels', message)),
    ...listAt(pool, 'spec', 'taints').flatMap((taint) =>
      wrongTaint(taint).map((message) => problem('taints', message)),
    ),
  ]
}

const problem = (field: string, message: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  message,
  field: `spec.${field}`,
})

/** Labels that no node can have, and labels that a pool does not decide. */
const wrongLabels = (labels: JsonObject): string[] =>
  Object.entries(labels).flatMap(([name, value]) =>
    said(
      wrongName(name),
      typeof value === 'string' ? wrongValue(value) : undefined,
      name === nodePoolLabel || name === hostNetworkLabel
        ? `${name} follows from the pool a node is in`
        : undefined,
    ),
  )

const said = (...messages: readonly (string | undefined)[]): string[] =>
  messages.filter((message) => message !== undefined)

const wrongTaint = (taint: Json): string[] =>
  said(wrongName(textAt(taint, 'key')), wrongValue(textAt(taint, 'value')))
