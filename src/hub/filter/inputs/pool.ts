import type { GVR } from '../../../api/kube/gvk.ts'
import { isList, isObject, type Json } from '../../../api/kube/json.ts'
import { hostNetworkLabel, nodePoolLabel } from '../../../api/kube/node-pool.ts'
import type { NodeFacts, PoolFacts } from '../inputs.ts'
import { membersOf, textsIn } from './node.ts'

/** What a NodePool says. */
export interface PoolRead {
  readonly type: string
  readonly hostNetwork: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /**
   * As its status names them. `undefined`: it names none, which tells nothing, as Go leaves an
   * empty list out: nobody has filled it in yet, or has not come to the node that asks.
   */
  readonly nodes: readonly string[] | undefined
}

/**
 * Reads a NodePool's JSON, in any of its versions. The older ones lose the field: API servers
 * convert it to the annotation, and v1alpha1 never had it (openyurt
 * pkg/apis/apps/v1beta1/nodepool_conversion.go).
 */
export function poolReadOf({ version }: GVR, bytes: Uint8Array): PoolRead {
  const { metadata, spec, status } = membersOf(bytes)
  const annotations = textsIn(metadata, 'annotations')
  const field = member(spec, 'hostNetwork') === true
  const noted = version !== 'v1beta2' && annotations[hostNetworkLabel]?.toLowerCase() === 'true'
  const type = member(spec, 'type')
  const nodes = member(status, 'nodes')
  return {
    type: typeof type === 'string' ? type : '',
    hostNetwork: field || noted,
    labels: textsIn(metadata, 'labels'),
    annotations,
    nodes: isList(nodes) ? sorted(textsOf(nodes)) : undefined,
  }
}

/** The nodes that a NodeBucket holds. */
export const bucketNodesOf = (bytes: Uint8Array): readonly string[] => {
  const { nodes } = membersOf(bytes)
  return isList(nodes) ? textsOf(nodes.map((node) => member(node, 'name') ?? null)) : []
}

/** What is known of a node's pool: by the operator, the Node, the NodePool, and from before. */
export interface KnownOfPool {
  /** As the operator has named it. */
  readonly named: string | undefined
  readonly node: NodeFacts | undefined
  /** `undefined`: its NodePool was not read. */
  readonly read: PoolRead | undefined
  /** The API server has answered that there is no such NodePool. */
  readonly isAbsent: boolean
  /** False: the operator does not want NodePools to be read. */
  readonly isRead: boolean
  /** What was known last, perhaps of another pool. */
  readonly last: PoolFacts | null | undefined
}

/**
 * The name of the pool; `null`: the node is in none; `undefined`: nobody knows yet. A pool that is
 * only wished for does not count.
 */
export function poolNameOf({ named, node }: KnownOfPool): string | null | undefined {
  return named ?? (node && (node.labels[nodePoolLabel] || null))
}

/**
 * The facts of the pool. What cannot be read keeps the value it had, as long as it is the same
 * pool.
 */
export function poolFactsOf(known: KnownOfPool): PoolFacts | null | undefined {
  const name = poolNameOf(known)
  const last = known.last?.name === name ? known.last : undefined
  if (name === null) return null
  // The operator's word counts from the start; the label is to be read first.
  if (name === undefined) return known.last
  const { node, read, isRead, isAbsent } = known
  const labelled = node?.labels[hostNetworkLabel] === 'true' ? true : undefined
  // Where nothing but the label is to count, it says so by not being there.
  const unlabelled = node && !isRead ? false : undefined
  // A pool that does not exist, for one because its name is mistyped, asks for no host network: the
  // node's pods must not wait for it. A pool that existed before keeps its value.
  const absent = node && isAbsent ? false : undefined
  return {
    name,
    type: read?.type ?? last?.type ?? '',
    hostNetwork: labelled ?? read?.hostNetwork ?? unlabelled ?? last?.hostNetwork ?? absent,
    labels: read?.labels ?? last?.labels ?? {},
    annotations: read?.annotations ?? last?.annotations ?? {},
  }
}

const member = (of: Json | undefined, name: string): Json | undefined =>
  isObject(of) ? of[name] : undefined

const textsOf = (value: Json | undefined): readonly string[] =>
  isList(value) ? (value.filter((each) => typeof each === 'string' && each !== '') as string[]) : []

const sorted = (names: Iterable<string>): readonly string[] => [...new Set(names)].toSorted()
