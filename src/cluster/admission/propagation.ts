import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt, withAt } from '../../api/kube/json-at.ts'
import { alternativesOf } from '../../api/kube/node-affinity.ts'
import { desiredNodePoolLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { notFoundWarning, type PoolLookup, type ClusterLookup } from './lookup.ts'
import type { MutationResult } from './node.ts'

/** The label for a pod's desired pool in the first proposal, before it had OpenYurt's prefix. */
const proposedDesiredLabel = 'nodepool.openyurt.io/desired-nodepool'

/**
 * YurtAppSet sets this label on its pods (openyurt pkg/apis/apps/well_known_labels_annotations.go).
 */
const poolNameLabel = 'apps.openyurt.io/pool-name'

/**
 * A pod on the host's network if its pool's pods are: the pool that its labels, node selector or
 * required affinity name or, for a pod that is meant for one node, the pool of that node. A pod
 * that names several pools, or could not run so, stays as it is, with a warning. Host ports are the
 * API server's to fill in: it gives a pod its defaults again after webhooks.
 */
export async function onHostNetworkOfPool(
  pod: JsonObject,
  lookup: ClusterLookup,
): Promise<MutationResult> {
  const as = (...warnings: string[]): MutationResult => ({ object: pod, warnings })
  if (valueAt(pod, 'spec', 'hostNetwork') === true) return as()
  const named = namedPools(pod)
  if (named.length > 1) return as(`it names several NodePools: ${named.join(', ')}`)
  const name = named[0] ?? (await poolOfItsNode(pod, lookup))
  if (name === undefined) return as('the node it is meant for could not be read now')
  if (name === '') return as()
  const pool: PoolLookup = await lookup.pool(name)
  if (pool === undefined || pool === 'unknown') return as(notFoundWarning(name, pool))
  if (pool.spec?.hostNetwork !== true) return as()
  const obstacle = obstacleTo(pod)
  if (obstacle !== undefined)
    return as(
      `NodePool ${name} has a host network, and this pod stays on the pod network: ${obstacle}`,
    )
  return { object: withAt(pod, ['spec', 'hostNetwork'], true), warnings: [] }
}

function namedPools(pod: JsonObject): string[] {
  const labels = [desiredNodePoolLabel, proposedDesiredLabel, poolNameLabel]
  const names = [
    ...labels.map((name) => textAt(pod, 'metadata', 'labels', name)),
    textAt(pod, 'spec', 'nodeSelector', nodePoolLabel),
    commonTo(alternativesOf(pod), poolRequiredBy),
  ]
  return [...new Set(names.filter((name) => name !== ''))]
}

/**
 * '' where the pod is for no single node, or that node is in no pool; `undefined` where it cannot
 * be read now.
 */
async function poolOfItsNode(pod: JsonObject, lookup: ClusterLookup): Promise<string | undefined> {
  const node = textAt(pod, 'spec', 'nodeName') || commonTo(alternativesOf(pod), nodeRequiredBy)
  if (node === '') return ''
  const labels = await lookup.nodeLabels(node)
  return labels === 'unknown' ? undefined : (labels?.[nodePoolLabel] ?? '')
}

/** The value that every alternative requires; '' where they differ, or there is none. */
function commonTo(terms: readonly Json[], requiredBy: (term: Json) => string): string {
  const required = new Set(terms.map(requiredBy))
  const [only = ''] = required
  return required.size === 1 ? only : ''
}

const poolRequiredBy = (term: Json): string =>
  onlyValue(listAt(term, 'matchExpressions'), nodePoolLabel)

/** The DaemonSet controller names the node of a pod this way. */
const nodeRequiredBy = (term: Json): string =>
  onlyValue(listAt(term, 'matchFields'), 'metadata.name')

function onlyValue(requirements: readonly Json[], key: string): string {
  for (const each of requirements) {
    const [value, ...others] = listAt(each, 'values')
    const isThis = textAt(each, 'key') === key && textAt(each, 'operator') === 'In'
    if (isThis && others.length === 0 && typeof value === 'string' && value !== '') return value
  }
  return ''
}

/**
 * Why the API server or a kubelet would refuse the pod on the host's network (k/k ValidatePodSpec;
 * kubelet sysctl/allowlist.go).
 */
export function obstacleTo(pod: JsonObject): string | undefined {
  if (valueAt(pod, 'spec', 'hostUsers') === false) return 'it has user namespaces of its own'
  if (valueAt(pod, 'spec', 'hostnameOverride') !== undefined) return 'it has a hostnameOverride'
  if (textAt(pod, 'spec', 'os', 'name') === 'windows') return 'it is for Windows'
  const sysctls = listAt(pod, 'spec', 'securityContext', 'sysctls').map((each) =>
    textAt(each, 'name'),
  )
  const sysctl = sysctls.find((name) => name.startsWith('net.') || name.startsWith('net/'))
  if (sysctl !== undefined) return `it sets ${sysctl}`
  return containersOf(pod).some(movesAPort) ? 'a hostPort is not its containerPort' : undefined
}

const containersOf = (pod: JsonObject): readonly Json[] =>
  ['containers', 'initContainers'].flatMap((member) => listAt(pod, 'spec', member))

const movesAPort = (container: Json): boolean =>
  listAt(container, 'ports').some((port) => {
    if (!isObject(port)) return false
    const hostPort = port['hostPort'] ?? 0
    return hostPort !== 0 && hostPort !== port['containerPort']
  })
