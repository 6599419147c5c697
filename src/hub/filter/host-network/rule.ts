import type { Cursor } from '../../../api/codec/cursor.ts'
import type { Inputs } from '../inputs.ts'
import type { NetworkVerdict } from './verdicts.ts'

/** Of static pods, which the kubelet knows without asking. */
const mirrorAnnotation = 'kubernetes.io/config.mirror'

/**
 * Whether a pod of this node could be shown otherwise than it is: not those that ask for the host's
 * network, nor mirrors of static pods.
 */
export function mayBePropagated(pod: Cursor, nodeName: string): boolean {
  if (pod.kind !== 'Pod' || pod.value(['spec', 'hostNetwork']) === true) return false
  const at = pod.value(['spec', 'nodeName'])
  if (at !== undefined && at !== nodeName) return false
  return !pod.mentions('config.mirror') || pod.annotation(mirrorAnnotation) === undefined
}

/**
 * How a kubelet was shown a pod, by what it has said of it; `undefined`: it has said nothing yet.
 * To a pod on the host's network it gives the host's address in the very status that first names
 * the host (`generateAPIPodStatus`, kubelet pkg/kubelet/kubelet_pods.go), and to others none before
 * they have their own.
 */
export function shownByStatus(pod: Cursor): NetworkVerdict | undefined {
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
 * How a pod is shown that was never shown before, by the mode and the kind of the node's pool;
 * `undefined` where that kind has never been known, and would decide.
 */
export function shownAnew({
  propagation,
  pool,
}: Pick<Inputs, 'propagation' | 'pool'>): NetworkVerdict | undefined {
  if (propagation !== 'on' || pool === null) return 'unchanged'
  if (pool?.hostNetwork === undefined) return undefined
  return pool.hostNetwork ? 'propagated' : 'unchanged'
}
