import type { JsonObject } from '../../api/kube/json.ts'
import { textAt, withAt } from '../../api/kube/json-at.ts'
import {
  desiredNodePoolLabel,
  hostNetworkLabel,
  isEdgeWorkerLabel,
  nodePoolLabel,
} from '../../api/kube/node-pool.ts'
import { invalid, type Status, type StatusCause } from '../../api/kube/status.ts'
import {
  previousAttributesAnnotation,
  readPrevious,
  writePrevious,
} from '../previous-attributes.ts'
import { notFoundWarning, type PoolLookup } from './lookup.ts'

/** The answer of a mutating webhook. */
export interface MutationResult {
  readonly object: JsonObject
  readonly warnings: readonly string[]
}

/** The answer of a validating webhook to a change. */
export interface ValidationResult {
  readonly refusal: Status | undefined
  readonly warnings: readonly string[]
}

/** The users that may change reserved labels of nodes, by their names at the API server. */
export interface Actors {
  /** The NodePool controller, which alone sets the hostnetwork label. */
  readonly controllers: ReadonlySet<string>
  /** Besides nodes themselves: controllers that convert nodes into edge workers and back. */
  readonly converters: ReadonlySet<string>
}

/** The pool of a new node: the one that its label names or, without that label, the desired one. */
export const poolOfNewNode = (node: JsonObject): string =>
  label(node, nodePoolLabel) || label(node, desiredNodePoolLabel)

/**
 * The pool that a change puts a node into, or takes it out of; '' where it does neither. The
 * desired pool counts in the change that sets it.
 */
export function poolOfUpdate(old: JsonObject, node: JsonObject): string {
  const [before, after] = [
    label(old, nodePoolLabel),
    label(node, nodePoolLabel) || newlyDesired(old, node),
  ]
  return before === after ? '' : before || after
}

function newlyDesired(old: JsonObject, node: JsonObject): string {
  const desired = label(node, desiredNodePoolLabel)
  const isNew = desired !== label(old, desiredNodePoolLabel)
  return isNew && label(old, nodePoolLabel) === '' ? desired : ''
}

/**
 * A new node as its pool requires: with the pool's label, and with the hostnetwork label if and
 * only if the pool has a host network. Where the pool cannot be read, labels stay as the kubelet
 * wrote them. A new node is never refused: a kubelet that cannot register takes all its pods with
 * it.
 */
export function mutateNewNode(node: JsonObject, pool: PoolLookup): MutationResult {
  const name = poolOfNewNode(node)
  if (name === '') return withoutPool(node)
  const member = labelled(node, nodePoolLabel, name)
  if (pool === undefined || pool === 'unknown')
    return { object: member, warnings: [notFoundWarning(name, pool)] }
  const hostNetwork = pool.spec?.hostNetwork === true
  const object = labelled(member, hostNetworkLabel, hostNetwork ? 'true' : undefined)
  return { object: remembering(object, name, hostNetwork, true), warnings: [] }
}

function withoutPool(node: JsonObject): MutationResult {
  if (label(node, hostNetworkLabel) === '') return { object: node, warnings: [] }
  return {
    object: labelled(node, hostNetworkLabel, undefined),
    warnings: [`label ${hostNetworkLabel} was taken off: the node is in no NodePool`],
  }
}

/**
 * A node after a change of its pool: a desired pool becomes membership, and the annotation records
 * the kind of the first pool. `pool`: the one of `poolOfUpdate`.
 */
export function mutateNodeUpdate(
  old: JsonObject,
  node: JsonObject,
  pool: PoolLookup,
): MutationResult {
  const name = poolOfUpdate(old, node)
  if (name === '') return { object: node, warnings: [] }
  const desired = label(node, nodePoolLabel) === '' ? newlyDesired(old, node) : ''
  const member = desired === '' ? node : labelled(node, nodePoolLabel, desired)
  if (pool === undefined || pool === 'unknown')
    return { object: member, warnings: [notFoundWarning(name, pool)] }
  const known = rememberedKind(old) ?? rememberedKind(member)
  if (known !== undefined) return { object: member, warnings: [] }
  return { object: remembering(member, name, pool.spec?.hostNetwork === true, false), warnings: [] }
}

/** Why a change of a node is refused. `pool`: the one of `poolOfUpdate`. */
export function validateNodeUpdate(
  old: JsonObject,
  node: JsonObject,
  { user, actors, pool }: { user: string; actors: Actors; pool: PoolLookup },
): ValidationResult {
  const isController = actors.controllers.has(user)
  const causes = [
    ...(isController ? [] : reservedChanges(old, node)),
    ...edgeWorkerChange(old, node, user, actors),
    ...poolChange(old, node),
    ...wrongKind(old, node, pool),
  ]
  const refusal = causes.length === 0 ? undefined : refused(node, causes)
  return { refusal, warnings: [] }
}

/**
 * Only the controller changes these: other components leave a node, or return to it, because of
 * them.
 */
const reservedChanges = (old: JsonObject, node: JsonObject): StatusCause[] => [
  ...(label(old, hostNetworkLabel) === label(node, hostNetworkLabel)
    ? []
    : [
        cause(`labels[${hostNetworkLabel}]`, 'only the controller of NodePools changes this label'),
      ]),
  ...(rememberedKind(old) === undefined || rememberedKind(old) === rememberedKind(node)
    ? []
    : [
        cause(
          `annotations[${previousAttributesAnnotation}]`,
          'of which kind the pool of a node was stays remembered',
        ),
      ]),
]

const edgeWorkerChange = (
  old: JsonObject,
  node: JsonObject,
  user: string,
  { converters }: Actors,
): StatusCause[] =>
  label(old, isEdgeWorkerLabel) === label(node, isEdgeWorkerLabel) ||
  user.startsWith('system:node:') ||
  converters.has(user)
    ? []
    : [
        cause(
          `labels[${isEdgeWorkerLabel}]`,
          'only nodes themselves and what converts them change this label',
        ),
      ]

function poolChange(old: JsonObject, node: JsonObject): StatusCause[] {
  const [before, after] = [label(old, nodePoolLabel), label(node, nodePoolLabel)]
  return before === '' || after === '' || before === after
    ? []
    : [
        cause(
          `labels[${nodePoolLabel}]`,
          `the node is in NodePool ${before}: take this label off before another is put on`,
        ),
      ]
}

/** A node is set up for a pod network or for none, when it joins. */
function wrongKind(old: JsonObject, node: JsonObject, pool: PoolLookup): StatusCause[] {
  const after = label(node, nodePoolLabel)
  const isAdded = label(old, nodePoolLabel) === '' && after !== ''
  if (!isAdded || pool === undefined || pool === 'unknown') return []
  const was = kindOf(old)
  const becomes = pool.spec?.hostNetwork === true
  if (was === undefined || was === becomes) return []
  const named = (hostNetwork: boolean) => (hostNetwork ? 'a host-network pool' : 'a standard pool')
  return [
    cause(
      `labels[${nodePoolLabel}]`,
      `the node was in ${named(was)} and ${after} is ${named(becomes)}: delete the Node and join again`,
    ),
  ]
}

/** Of which kind the node's pool is or was; `undefined`: it was in none. */
const kindOf = (node: JsonObject): boolean | undefined =>
  rememberedKind(node) ?? (label(node, hostNetworkLabel) === 'true' ? true : undefined)

const rememberedKind = (node: JsonObject): boolean | undefined =>
  readPrevious(textAt(node, 'metadata', 'annotations', previousAttributesAnnotation)).hostNetwork

/**
 * As the controller would write it, so that it has nothing to write. Of a new node no more is
 * remembered than this.
 */
function remembering(
  node: JsonObject,
  nodePool: string,
  hostNetwork: boolean,
  isNew: boolean,
): JsonObject {
  const path = ['metadata', 'annotations', previousAttributesAnnotation]
  const before = readPrevious(isNew ? undefined : textAt(node, ...path))
  const labelled = isNew && hostNetwork && { labelled: true }
  return withAt(node, path, writePrevious({ ...before, nodePool, hostNetwork, ...labelled }))
}

const label = (node: JsonObject, name: string): string => textAt(node, 'metadata', 'labels', name)

const labelled = (node: JsonObject, name: string, value: string | undefined): JsonObject =>
  withAt(node, ['metadata', 'labels', name], value)

const cause = (field: string, message: string): StatusCause => ({
  reason: 'FieldValueForbidden',
  message,
  field: `metadata.${field}`,
})

function refused(node: JsonObject, causes: readonly StatusCause[]): Status {
  const name = textAt(node, 'metadata', 'name')
  const said = causes.map(({ field, message }) => `${field}: ${message}`).join(', ')
  return invalid(`Node "${name}" is invalid: ${said}`, { name, kind: 'Node', causes })
}
