import type { GVR } from '../../../api/kube/gvk.ts'
import { isList, type Json } from '../../../api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../../api/kube/json-at.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../../api/kube/node-pool.ts'
import type { NodeFacts, PoolFacts } from '../inputs.ts'
import { membersOf, stringsIn } from './node.ts'

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
  const annotations = stringsIn(metadata, 'annotations')
  const field = valueAt(spec, 'hostNetwork') === true
  const noted = version !== 'v1beta2' && annotations[hostNetworkLabel]?.toLowerCase() === 'true'
  const nodes = valueAt(status, 'nodes')
  return {
    type: textAt(spec, 'type'),
    hostNetwork: field || noted,
    labels: stringsIn(metadata, 'labels'),
    annotations,
    nodes: isList(nodes) ? [...new Set(textsOf(nodes))].toSorted() : undefined,
  }
}

/** The nodes in a NodeBucket. */
export const nodesOfBucket = (bytes: Uint8Array): readonly string[] =>
  textsOf(listAt(membersOf(bytes), 'nodes').map((node) => textAt(node, 'name')))

/**
 * The hub's observations of a node's pool, from the configuration, the Node, the NodePool and
 * earlier.
 */
export interface PoolObservations {
  /** The pool name in the configuration. */
  readonly configuredName: string | undefined
  readonly node: NodeFacts | undefined
  /** `undefined`: the NodePool was not read. */
  readonly nodePool: ParsedNodePool | undefined
  /** The API server answered that the NodePool does not exist. */
  readonly isAbsent: boolean
  /** Whether the configuration lets the hub read NodePools. */
  readonly readsNodePools: boolean
  /** The last known facts, perhaps of another pool. */
  readonly lastFacts: PoolFacts | null | undefined
}

/**
 * The name of the pool; `null`: the node is in none; `undefined`: not known yet. The annotation for
 * a desired pool does not count.
 */
export function poolNameOf({ configuredName, node }: PoolObservations): string | null | undefined {
  return configuredName ?? (node && (node.labels[nodePoolLabel] || null))
}

/**
 * The facts of the pool. A fact that cannot be read keeps its last value while the pool is the
 * same.
 */
export function poolFactsOf(known: PoolObservations): PoolFacts | null | undefined {
  const name = poolNameOf(known)
  const last = known.lastFacts?.name === name ? known.lastFacts : undefined
  if (name === null) return null
  // A configured name applies from the start; the label has to be read first.
  if (name === undefined) return known.lastFacts
  const { node, nodePool, readsNodePools, isAbsent } = known
  const labelled = node?.labels[hostNetworkLabel] === 'true' ? true : undefined
  // Where only the label counts, its absence means false.
  const unlabelled = node && !readsNodePools ? false : undefined
  // A pool that does not exist, perhaps because its name is mistyped, has no host network: the
  // node's pods must not wait for it. A pool that existed before keeps its value.
  const absent = node && isAbsent ? false : undefined
  return {
    name,
    type: nodePool?.type ?? last?.type ?? '',
    hostNetwork: labelled ?? nodePool?.hostNetwork ?? unlabelled ?? last?.hostNetwork ?? absent,
    labels: nodePool?.labels ?? last?.labels ?? {},
    annotations: nodePool?.annotations ?? last?.annotations ?? {},
  }
}

const textsOf = (list: readonly Json[]): readonly string[] =>
  list.filter((each) => typeof each === 'string' && each !== '') as string[]
