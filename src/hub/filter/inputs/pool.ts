import type { GVR } from '../../../api/kube/gvk.ts'
import { isList, type Json } from '../../../api/kube/json.ts'
import { listAt, textAt, textsAt, valueAt } from '../../../api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../../api/kube/node-pool.ts'
import type { NodeFacts, PoolFacts } from '../inputs.ts'
import { membersOf } from './node.ts'

/** The fields of a NodePool that the hub reads. */
export interface ParsedNodePool {
  readonly type: string
  readonly hostNetwork: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /**
   * The nodes in its status. `undefined`: none are listed, which Go also writes for an empty list;
   * the status may not be filled in yet, or not have reached the API server's replica.
   */
  readonly nodes: readonly string[] | undefined
}

/**
 * Parses a NodePool of any version. Older versions lack the field: API servers convert it to the
 * annotation, and v1alpha1 never had it (openyurt pkg/apis/apps/v1beta1/nodepool_conversion.go).
 */
export function parseNodePool({ version }: GVR, bytes: Uint8Array): ParsedNodePool {
  const { metadata, spec, status } = membersOf(bytes)
  const annotations = textsAt(metadata, 'annotations')
  const field = valueAt(spec, 'hostNetwork') === true
  const noted = version !== 'v1beta2' && annotations[hostNetworkLabel]?.toLowerCase() === 'true'
  const nodes = valueAt(status, 'nodes')
  return {
    type: textAt(spec, 'type'),
    hostNetwork: field || noted,
    labels: textsAt(metadata, 'labels'),
    annotations,
    nodes: isList(nodes) ? [...new Set(textsOf(nodes))].toSorted() : undefined,
  }
}

/** The nodes in a NodeBucket. */
export const nodesOfBucket = (bytes: Uint8Array): readonly string[] =>
  textsOf(listAt(membersOf(bytes), 'nodes').map((node) => textAt(node, 'name')))

/**
 * The name of the pool; `null`: the node is in none; `undefined`: not known yet. The annotation for
 * a desired pool does not count.
 */
export const poolNameOf = (
  configured: string | undefined,
  node: NodeFacts | undefined,
): string | null | undefined => configured ?? (node && (node.labels[nodePoolLabel] || null))

/** What is known of a node's pool. */
interface KnownPool {
  /** `null`: the node is in none. */
  readonly name: string | null
  readonly node: NodeFacts | undefined
  /** `off`: the configuration does not let the hub read NodePools. */
  readonly way: 'status' | 'buckets' | 'off'
  /** Its NodePool as it was read last, and whether an API server has answered that it has none. */
  readonly nodePool?: { readonly value: ParsedNodePool | undefined; readonly isAbsent: boolean }
}

/** The facts of the pool. */
export function poolFactsOf({ name, node, way, nodePool }: KnownPool): PoolFacts | null {
  if (name === null) return null
  const { type = '', hostNetwork, labels = {}, annotations = {} } = nodePool?.value ?? {}
  const labelled = node?.labels[hostNetworkLabel] === 'true' ? true : undefined
  // Where only the label counts, its absence means false. A pool that does not exist, perhaps
  // because its name is mistyped, has no host network: the node's pods must not wait for it.
  const unlabelled = node && (way === 'off' || nodePool?.isAbsent) ? false : undefined
  return { name, type, hostNetwork: labelled ?? hostNetwork ?? unlabelled, labels, annotations }
}

const textsOf = (list: readonly Json[]): readonly string[] =>
  list.filter((each) => typeof each === 'string' && each !== '') as string[]
