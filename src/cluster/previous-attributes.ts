import { isList, isObject, parseJson, type Json } from '../api/kube/json.ts'
import { textsAt } from '../api/kube/json-at.ts'
import type { PoolTaint } from '../api/kube/node-pool.ts'

/** On a Node: the attributes that its pool has put on it. */
export const previousAttributesAnnotation = 'nodepool.openyurt.io/previous-attributes'

/**
 * The content of the annotation on a Node about its pool, as JSON. Labels, annotations and taints
 * are in yurt-manager's format (pkg/yurtmanager/controller/nodepool/nodepool_controller.go), which
 * ignores the other members.
 */
export interface PreviousAttributes {
  /**
   * The attributes that the pool put on the node, with their values. An attribute that was there
   * before is not the pool's, even where it is equal.
   */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly PoolTaint[]
  /** The pool that the node is in, or was in last. */
  readonly nodePool?: string
  /** Whether that is a host-network pool: a node keeps its kind, also between two pools. */
  readonly hostNetwork?: boolean
  /**
   * Whether the node has carried the hostnetwork label in that pool: then the label belongs there,
   * whichever pods run on the node.
   */
  readonly labelled?: boolean
}

const nothingRemembered: PreviousAttributes = { labels: {}, annotations: {}, taints: [] }

/**
 * Reads the annotation. A malformed member counts as absent, so that nothing is removed because of
 * it.
 */
export function readPrevious(annotation: string | undefined): PreviousAttributes {
  const read = parseJson(annotation ?? '')
  if (!isObject(read)) return nothingRemembered
  const { nodePool, hostNetwork, labelled, taints } = read
  return {
    labels: textsAt(read, 'labels'),
    annotations: textsAt(read, 'annotations'),
    taints: isList(taints) ? taints.flatMap(taintOf) : [],
    ...(typeof nodePool === 'string' && { nodePool }),
    ...(typeof hostNetwork === 'boolean' && { hostNetwork }),
    ...(labelled === true && { labelled }),
  }
}

/** Equal attributes give equal bytes, in whatever order they come. */
export function writePrevious(previous: PreviousAttributes): string {
  const { labels, annotations, taints, nodePool, hostNetwork, labelled } = previous
  return JSON.stringify({
    ...(Object.keys(labels).length > 0 && { labels: sorted(labels) }),
    ...(Object.keys(annotations).length > 0 && { annotations: sorted(annotations) }),
    ...(taints.length > 0 && {
      taints: taints.map(({ key, value, effect }) => ({ key, ...(value && { value }), effect })),
    }),
    nodePool,
    hostNetwork,
    labelled,
  })
}

function taintOf(value: Json): PoolTaint[] {
  if (!isObject(value)) return []
  const { key, value: text, effect } = value
  if (typeof key !== 'string' || typeof effect !== 'string') return []
  return [{ key, effect, ...(typeof text === 'string' && text !== '' && { value: text }) }]
}

const sorted = (record: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
