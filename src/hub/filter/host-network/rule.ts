import { isMirrorPod, type Cursor } from '../../../api/codec/cursor.ts'
import type { Inputs } from '../inputs.ts'

/**
 * How the kubelet gets a pod: on the host's network though it does not request it, or as the API
 * server has it. 'unknown': the kind of the pool decides, and is unknown.
 */
type Shown = 'propagated' | 'unchanged' | 'unknown'

/**
 * A pod that a kubelet runs keeps its network, which the pod's status shows: a kubelet restarts a
 * pod whose network changes. On a new pod mode and pool decide. Propagation never applies to a pod
 * of another node, to one that requests the host's network, nor to a mirror pod.
 */
export function shownAs(
  pod: Cursor,
  inputs: Pick<Inputs, 'nodeName' | 'propagation' | 'pool'>,
): Shown {
  if (pod.kind !== 'Pod' || pod.value(['spec', 'hostNetwork']) === true) return 'unchanged'
  const at = pod.value(['spec', 'nodeName'])
  if (at !== undefined && at !== inputs.nodeName) return 'unchanged'
  const shown = shownByStatus(pod) ?? shownWhenNew(inputs)
  // All of a pod is searched for that: only where it decides.
  return shown !== 'unchanged' && isMirrorPod(pod) ? 'unchanged' : shown
}

/**
 * The network on which a kubelet runs a pod, by the status that it wrote; `undefined`: no status
 * yet. To a pod on the host's network it gives the host's address in the same status that first
 * names the host (`generateAPIPodStatus`, kubelet pkg/kubelet/kubelet_pods.go), and to others none
 * before they have their own.
 */
function shownByStatus(pod: Cursor): Shown | undefined {
  const hosts = addresses(pod, 'hostIP', 'hostIPs')
  const own = addresses(pod, 'podIP', 'podIPs')
  if (hosts.length + own.length === 0) return undefined
  return own.some((each) => hosts.includes(each)) ? 'propagated' : 'unchanged'
}

function addresses(pod: Cursor, one: string, all: string): readonly unknown[] {
  const count = pod.count(['status', all])
  const listed = Array.from({ length: count }, (_, at) => pod.value(['status', all, at, 'ip']))
  return [pod.value(['status', one]), ...listed].filter((each) => each !== undefined)
}

function shownWhenNew({ propagation, pool }: Pick<Inputs, 'propagation' | 'pool'>): Shown {
  if (propagation === 'off' || pool === null) return 'unchanged'
  if (pool?.hostNetwork === undefined) return 'unknown'
  return pool.hostNetwork ? 'propagated' : 'unchanged'
}
