import { isMirrorPod, type Cursor } from '../../../api/codec/cursor.ts'
import type { Inputs } from '../inputs.ts'

/**
 * How the kubelet gets a pod: on the host's network though it does not request it, or as the API
 * server has it. 'unknown': the kind of the pool decides, and is unknown.
 */
type Shown = 'propagated' | 'unchanged' | 'unknown'

/**
 * A pod that a kubelet runs keeps its network, which the pod's status shows: a kubelet restarts a
 * pod whose network changes. On a new pod mode and pool decide.
 */
export function shownAs(
  pod: Cursor,
  inputs: Pick<Inputs, 'nodeName' | 'propagation' | 'pool'>,
): Shown {
  if (!mayBePropagated(pod, inputs.nodeName)) return 'unchanged'
  return shownByStatus(pod) ?? shownWhenNew(inputs)
}

/**
 * Whether propagation may apply to a pod of this node: not to one that requests the host's network,
 * nor to a mirror pod.
 */
function mayBePropagated(pod: Cursor, nodeName: string): boolean {
  if (pod.kind !== 'Pod' || pod.value(['spec', 'hostNetwork']) === true) return false
  const at = pod.value(['spec', 'nodeName'])
  if (at !== undefined && at !== nodeName) return false
  return !isMirrorPod(pod)
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
