import type { JsonObject } from '../../api/kube/json.ts'
import { textAt, withAt } from '../../api/kube/json-at.ts'
import { desiredNodePoolLabel, hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
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
