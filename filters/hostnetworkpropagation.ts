import type { Edit, FilterDefinition } from '../src/hub/filter/filter.ts'
import { shownAs } from '../src/hub/filter/host-network/rule.ts'
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
    const left = new Map<string, string>()
    return (pod) => {
      // The answer to a deletion may be a Status.
      if (pod.kind !== 'Pod') return 'leave'
      const known = left.get(pod.uid)
      if (known === running || known === pod.resourceVersion) return 'leave'
      const shown = shownAs(pod, inputs)
      if (shown === 'unknown') return 'withhold'
      if (shown === 'propagated') return propagated
      // It may be what this filter has made of the pod.
      if (pod.value(['spec', 'hostNetwork']) === true) return 'leave'
      if (pod.uid === '') return 'leave'
      if (left.size >= mostRemembered) left.clear()
      const isRunning = pod.value(['status', 'hostIP']) !== undefined
      left.set(pod.uid, isRunning ? running : pod.resourceVersion)
      return 'leave'
    }
  },
})

/** In place of a version: the pod has a status, so that its network stays. */
const running = 'running'

/**
 * The pods that were left, by uid: to find the status in JSON takes as long as to cut the pod out
 * of its list, and most lists and events repeat the same pods. More than a node has.
 */
const mostRemembered = 1_000

const propagated: readonly Edit[] = [{ op: 'set', path: ['spec', 'hostNetwork'], value: true }]
