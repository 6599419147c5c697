import type { Cursor } from '../../../api/codec/cursor.ts'
import { isMirrorPod } from '../../../api/codec/mirror-pod.ts'
import type { Inputs } from '../inputs.ts'
import type { FinalVerdict } from './verdicts.ts'

/**
 * Whether propagation may apply to a pod of this node: not to one that requests the host's network,
 * nor to a mirror pod.
 */
export function mayBePropagated(pod: Cursor, nodeName: string): boolean {
  if (pod.kind !== 'Pod' || pod.value(['spec', 'hostNetwork']) === true) return false
  const at = pod.value(['spec', 'nodeName'])
  if (at !== undefined && at !== nodeName) return false
  return !isMirrorPod(pod)
}

/**
 * The verdict under which a kubelet runs a pod, by the status that it wrote; `undefined`: no status
 * yet. To a pod on the host's network it gives the host's address in the same status that first
 * names the host (`generateAPIPodStatus`, kubelet pkg/kubelet/kubelet_pods.go), and to others none
 * before they have their own.
 */
export function verdictFromStatus(pod: Cursor): FinalVerdict | undefined {
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

/**
 * The verdict for a pod that the kubelet has not seen, by the mode and the kind of the node's pool;
 * `undefined` where that kind is unknown and would decide, and where the port ledger decides.
 */
export function verdictForNewPod({
  propagation,
  pool,
}: Pick<Inputs, 'propagation' | 'pool'>): FinalVerdict | undefined {
  if (propagation === 'off' || propagation === 'observe' || pool === null) return 'unchanged'
  if (pool?.hostNetwork === undefined) return undefined
  if (!pool.hostNetwork) return 'unchanged'
  return propagation === 'on' ? 'propagated' : undefined
}
