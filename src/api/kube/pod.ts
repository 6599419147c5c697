import type { Json } from './json.ts'
import { listAt, textAt, valueAt } from './json-at.ts'
import { excludeAnnotation } from './node-pool.ts'

/**
 * The API server's picture of a pod that a kubelet runs from a file; nothing here reaches the pod
 * itself.
 */
export const isMirror = (pod: Json): boolean =>
  valueAt(pod, 'metadata', 'annotations', 'kubernetes.io/config.mirror') !== undefined

/**
 * Whether admission keeps a pod off host-network pools; a DaemonSet's pods as well. Exactly `true`:
 * other values have never had an effect.
 */
export const isExcluded = ({ metadata = {} }: { readonly metadata?: Json }): boolean =>
  textAt(metadata, 'annotations', excludeAnnotation) === 'true'

/** Whether a pod in this phase has ended: its containers are not started again. */
export const isTerminal = (phase: unknown): boolean => phase === 'Succeeded' || phase === 'Failed'

export const hasEnded = (pod: Json): boolean => isTerminal(valueAt(pod, 'status', 'phase'))

/**
 * Whether a pod runs, or has run, on the host's network although its spec does not request it. By
 * the status of its kubelet: only a pod on the host's network has the address of its host
 * (`generateAPIPodStatus`, kubelet pkg/kubelet/kubelet_pods.go).
 */
export function isPropagated(pod: Json): boolean {
  if (valueAt(pod, 'spec', 'hostNetwork') === true || isMirror(pod)) return false
  const addresses = (one: string, all: string): readonly string[] =>
    [
      textAt(pod, 'status', one),
      ...listAt(pod, 'status', all).map((each) => textAt(each, 'ip')),
    ].filter((address) => address !== '')
  const hosts = addresses('hostIP', 'hostIPs')
  return addresses('podIP', 'podIPs').some((address) => hosts.includes(address))
}
