import { isMirrorPod, type Cursor } from '../src/api/codec/cursor.ts'
import type { Edit, FilterDefinition } from '../src/hub/filter/filter.ts'
import type { Inputs } from '../src/hub/filter/inputs.ts'

/**
 * Puts the pods of a host-network pool on the host's network for the kubelet, whatever the API says
 * (OpenYurt 1.4, pkg/yurthub/filter/hostnetworkpropagation). A kubelet restarts a pod whose network
 * changes: a pod that runs keeps its network, in every mode.
 */
export const hostnetworkpropagation = (
  propagation: Inputs['propagation'],
): FilterDefinition<'nodeName' | 'propagation' | 'pool'> => ({
  name: 'hostnetworkpropagation',
  rules: [
    {
      components: ['kubelet'],
      group: '',
      resources: ['pods'],
      verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
    },
  ],
  // Withholding every pod that cannot be read would be worse.
  onError: 'pass',
  // The hub watches the inputs of a filter: not this one where the filter is off. Go writes a
  // `hostNetwork` that is false as well.
  ...(propagation === 'off'
    ? {
        withholds: false,
        keepsLength: true,
        neverChanges: true,
        needs: ['nodeName', 'propagation'],
      }
    : { needs: ['nodeName', 'propagation', 'pool'] }),
  actsWhenDisabled: true,
  // A new pod waits until its network is known: the kubelet would start it on the wrong one.
  create(inputs) {
    const left = new Map<string, string | true>()
    return (pod) => {
      // The answer to a deletion may be a Status.
      if (pod.kind !== 'Pod') return 'leave'
      const known = left.get(pod.uid)
      if (known === true || known === pod.resourceVersion) return 'leave'
      const shown = shownAs(pod, inputs)
      if (shown === 'unknown') return 'withhold'
      if (shown === 'propagated') return propagated
      // It may be what this filter has made of the pod.
      if (pod.uid === '' || pod.value(['spec', 'hostNetwork']) === true) return 'leave'
      if (left.size >= mostRemembered) left.clear()
      const isRunning = pod.value(['status', 'hostIP']) !== undefined
      left.set(pod.uid, isRunning || pod.resourceVersion)
      return 'leave'
    }
  },
})

/**
 * The pods that were left, by uid: in this version, or in all, as they run and keep their network.
 * To find the status in JSON takes as long as to cut the pod out of its list, and most lists and
 * events repeat the same pods. More than a node has.
 */
const mostRemembered = 1_000

const propagated: readonly Edit[] = [{ op: 'set', path: ['spec', 'hostNetwork'], value: true }]

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
