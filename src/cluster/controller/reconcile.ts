import {
  hostNetworkLabel,
  nodePoolLabel,
  type NodePool,
  type NodePoolStatus,
  type PoolTaint,
} from '../../api/kube/node-pool.ts'
import {
  previousAttributesAnnotation,
  readPrevious,
  writePrevious,
  type PreviousAttributes,
} from '../previous-attributes.ts'
import { mergeTaints, mergeTexts } from './attributes.ts'
import type { NodeFacts } from './node-facts.ts'

/** An Event to record about a Node. */
export interface NodeEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason:
    | 'NodePoolChanged'
    | 'NodePoolMoveRefused'
    | 'HostNetworkLabelRestored'
    | 'HostNetworkLabelRemoved'
    | 'HostNetworkLabelWithheld'
  readonly message: string
}

/** A change of a Node: a JSON merge patch, without the version that it applies to. */
export interface NodeWrite {
  readonly metadata: {
    readonly labels?: Readonly<Record<string, string | null>>
    readonly annotations?: Readonly<Record<string, string | null>>
  }
  readonly spec?: { readonly taints: readonly PoolTaint[] }
}

export interface NodeOutcome {
  /** The node's pods have to be read before anything is written: call again with them. */
  readonly awaits?: 'pods'
  readonly write?: NodeWrite
  readonly events: readonly NodeEvent[]
  /** Pods on the pod network for which the hostnetwork label is withheld. */
  readonly withheldFor: readonly string[]
}

/**
 * Pods of a node, `namespace/name`, that are on the pod network and have not ended; undefined: not
 * read yet.
 */
export type PodNetworkPods = readonly string[] | undefined

/** Labels that a pool never sets, even where its spec has them. */
const reservedLabels = new Set([nodePoolLabel, hostNetworkLabel])

const nothing: NodeOutcome = { events: [], withheldFor: [] }

/**
 * The outcome for a node. `pool` is the pool that its label names, `undefined` where there is none
 * of that name. Once it is written, the next outcome is empty.
 */
export function reconcileNode(
  node: NodeFacts,
  pool: NodePool | undefined,
  pods: PodNetworkPods,
): NodeOutcome {
  const poolName = node.labels[nodePoolLabel] ?? ''
  const annotation = node.annotations[previousAttributesAnnotation]
  const before = readPrevious(annotation)
  if (poolName === '') return annotation === undefined ? nothing : withoutPool(node, before)
  if (pool === undefined) return nothing
  const hostNetwork = pool.spec?.hostNetwork === true
  if (before.hostNetwork !== undefined && before.hostNetwork !== hostNetwork)
    return moveRefused(poolName, hostNetwork)
  const label = hostNetwork
    ? labelToSet(node, before, poolName, pods)
    : labelToRemove(node, poolName)
  if (label === 'pods') return { ...nothing, awaits: 'pods' }
  const merged = mergedAttributes(node, before, pool)
  const previous: PreviousAttributes = {
    ...merged.ours,
    nodePool: poolName,
    hostNetwork,
    ...(label.labelled && { labelled: true }),
  }
  return {
    ...withWrite(node, { ...merged, labels: { ...merged.labels, ...label.change } }, previous),
    events: [...moved(node, before, poolName), ...label.events],
    withheldFor: label.withheldFor,
  }
}

/**
 * The pool's attributes are removed; the annotation keeps that there was a pool, and of which kind.
 */
function withoutPool(node: NodeFacts, before: PreviousAttributes): NodeOutcome {
  const merged = mergedAttributes(node, before, undefined)
  const { nodePool, hostNetwork, labelled } = before
  const previous: PreviousAttributes = {
    ...merged.ours,
    ...(nodePool !== undefined && { nodePool }),
    ...(hostNetwork !== undefined && { hostNetwork }),
    ...(labelled && { labelled }),
  }
  return { ...nothing, ...withWrite(node, merged, previous) }
}

const moveRefused = (poolName: string, hostNetwork: boolean): NodeOutcome => ({
  ...nothing,
  events: [
    {
      type: 'Warning',
      reason: 'NodePoolMoveRefused',
      message: `The node was in a ${hostNetwork ? 'standard' : 'host-network'} pool and is left as it is: ${poolName} is a ${hostNetwork ? 'host-network' : 'standard'} pool. Delete the Node object and join again to change its kind`,
    },
  ],
})

interface LabelOutcome {
  readonly change: Readonly<Record<string, string | null>>
  /** Whether the node carries the label once this is written. */
  readonly labelled: boolean
  readonly events: readonly NodeEvent[]
  readonly withheldFor: readonly string[]
}

/** No change of the label. */
const settled = { change: {}, events: [], withheldFor: [] } as const

/**
 * In a host-network pool. DaemonSets of the CNI leave at once when the label appears, so it is put
 * on a node that never carried it only where no pod needs them.
 */
function labelToSet(
  node: NodeFacts,
  before: PreviousAttributes,
  poolName: string,
  pods: PodNetworkPods,
): LabelOutcome | 'pods' {
  if (node.labels[hostNetworkLabel] === 'true') return { ...settled, labelled: true }
  const set = { ...settled, change: { [hostNetworkLabel]: 'true' }, labelled: true }
  if (before.labelled) {
    const message = `The label ${hostNetworkLabel} was taken off and has been put back: the node is in the host-network pool ${poolName}`
    return { ...set, events: [{ type: 'Warning', reason: 'HostNetworkLabelRestored', message }] }
  }
  if (pods === undefined) return 'pods'
  if (pods.length === 0) return set
  const message = `The label ${hostNetworkLabel} is withheld: pods on the pod network run here, and the CNI would leave at once (${someOf(pods)})`
  return {
    ...settled,
    labelled: false,
    events: [{ type: 'Warning', reason: 'HostNetworkLabelWithheld', message }],
    withheldFor: pods,
  }
}

function labelToRemove(node: NodeFacts, poolName: string): LabelOutcome {
  if (node.labels[hostNetworkLabel] === undefined) return { ...settled, labelled: false }
  const message = `The label ${hostNetworkLabel} has been removed: ${poolName} is a standard pool`
  return {
    ...settled,
    change: { [hostNetworkLabel]: null },
    labelled: false,
    events: [{ type: 'Warning', reason: 'HostNetworkLabelRemoved', message }],
  }
}

/** The first three, and how many more there are. */
const someOf = (names: readonly string[]): string =>
  names.length <= 3
    ? names.join(', ')
    : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`

function moved(node: NodeFacts, before: PreviousAttributes, poolName: string): NodeEvent[] {
  const from = before.nodePool
  if (from === undefined || from === poolName) return []
  const message = `The nodepool of the node(${node.name}) is changed from ${from} to ${poolName}`
  return [{ type: 'Normal', reason: 'NodePoolChanged', message }]
}

interface Merged {
  readonly labels: Readonly<Record<string, string | null>>
  readonly annotations: Readonly<Record<string, string | null>>
  readonly taints?: readonly PoolTaint[]
}

function mergedAttributes(
  node: NodeFacts,
  before: PreviousAttributes,
  pool: NodePool | undefined,
): Merged & { ours: Pick<PreviousAttributes, keyof Merged> } {
  const spec = pool?.spec
  const labels = mergeTexts(
    node.labels,
    before.labels,
    without(spec?.labels, (key) => reservedLabels.has(key)),
  )
  const annotations = mergeTexts(
    node.annotations,
    before.annotations,
    without(spec?.annotations, (key) => key === previousAttributesAnnotation),
  )
  const taints = mergeTaints(node.taints, before.taints, spec?.taints ?? [])
  return {
    labels: labels.changes,
    annotations: annotations.changes,
    ...(taints.taints && { taints: taints.taints }),
    ours: { labels: labels.ours, annotations: annotations.ours, taints: taints.ours },
  }
}

const without = (
  texts: Readonly<Record<string, string>> | undefined,
  left: (key: string) => boolean,
): Record<string, string> =>
  Object.fromEntries(Object.entries(texts ?? {}).filter(([key]) => !left(key)))

/** The changes and the updated annotation as one patch; nothing where nothing changes. */
function withWrite(
  node: NodeFacts,
  { labels, annotations, taints }: Merged,
  previous: PreviousAttributes,
): { write?: NodeWrite } {
  const remembered = writePrevious(previous)
  const changed: Record<string, string | null> = { ...annotations }
  if (node.annotations[previousAttributesAnnotation] !== remembered)
    changed[previousAttributesAnnotation] = remembered
  const hasLabels = Object.keys(labels).length > 0
  const hasAnnotations = Object.keys(changed).length > 0
  if (!hasLabels && !hasAnnotations && taints === undefined) return {}
  return {
    write: {
      metadata: { ...(hasLabels && { labels }), ...(hasAnnotations && { annotations: changed }) },
      ...(taints && { spec: { taints } }),
    },
  }
}

/** Keeps a pool from vanishing under its nodes where no webhook answers. */
export const nodesFinalizer = 'nodepool.openyurt.io/nodes'

export interface PoolOutcome {
  /** A JSON merge patch of the pool itself, without the version that it is made for. */
  readonly write?: { readonly metadata: { readonly finalizers: readonly string[] } }
  /** A JSON merge patch of the pool's status. */
  readonly status?: Pick<Required<NodePoolStatus>, 'readyNodeNum' | 'unreadyNodeNum' | 'nodes'>
}

/** The outcome for a pool with these nodes. Once it is written, the next outcome is empty. */
export function reconcilePool(pool: NodePool, nodes: readonly NodeFacts[]): PoolOutcome {
  const names = nodes.map(({ name }) => name).sort()
  const ready = nodes.filter(({ ready }) => ready).length
  const status = { readyNodeNum: ready, unreadyNodeNum: nodes.length - ready, nodes: names }
  const is = pool.status
  const same =
    is?.readyNodeNum === status.readyNodeNum &&
    is.unreadyNodeNum === status.unreadyNodeNum &&
    names.length === (is.nodes ?? []).length &&
    names.every((name, i) => name === is.nodes?.[i])
  const finalizers = pool.metadata.finalizers ?? []
  const held = finalizers.includes(nodesFinalizer)
  // A pool that is being deleted takes no new finalizer.
  const hold = names.length > 0 && (held || pool.metadata.deletionTimestamp === undefined)
  return {
    ...(held !== hold && {
      write: {
        metadata: {
          finalizers: hold
            ? [...finalizers, nodesFinalizer]
            : finalizers.filter((each) => each !== nodesFinalizer),
        },
      },
    }),
    ...(!same && { status }),
  }
}
