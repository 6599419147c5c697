import type { Edit, Filter, FilterDefinition, ShownObject } from '../src/hub/filter/filter.ts'
import { shownAs, shownIfReadable } from '../src/hub/filter/host-network/rule.ts'
import type { ShownPod, ShownPods } from '../src/hub/filter/host-network/shown-pods.ts'
import type { Inputs } from '../src/hub/filter/inputs.ts'
import { serviceUnavailable, StatusError } from '../src/api/kube/status.ts'

/**
 * Puts the pods of a host-network pool on the host's network for the kubelet, whatever the API says
 * (OpenYurt 1.4, pkg/yurthub/filter/hostnetworkpropagation). A kubelet restarts a pod whose network
 * changes: a pod keeps the network with which the kubelet first got it, in every mode.
 */
export const hostnetworkpropagation = (
  kept: Pick<ShownPods, 'of' | 'settle' | 'areKept'>,
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
  // If the network of a pod is unknown, withholding the pod would be worse.
  onError: 'pass',
  withholds: false,
  // The hub watches the inputs of a filter: not this one where the filter is off.
  needs: ['nodeName', 'propagation', ...(propagation === 'off' ? [] : (['pool'] as const))],
  actsWhenDisabled: true,
  create(inputs) {
    if (inputs.propagation === 'off' && !kept.areKept) return undefined
    const before = (pods: readonly ShownObject[]): Promise<void> | undefined => {
      const settled: ShownPod[] = []
      for (const { cursor, uid } of pods) {
        // The filter fails at a pod that cannot be read, and counts it.
        const shown = shownIfReadable(cursor, kept.of(uid), inputs)
        if (shown === 'unknown') throw new StatusError(serviceUnavailable(kindUnknown))
        if (shown !== undefined && uid !== '') settled.push([uid, shown])
      }
      return kept.settle(settled)
    }
    // The answer to a deletion may be a Status.
    const filter: Filter = (pod) => {
      if (pod.kind !== 'Pod') return 'leave'
      const uid = String(pod.value(['metadata', 'uid']) ?? '')
      return shownAs(pod, kept.of(uid), inputs) === 'propagated' ? propagated : 'leave'
    }
    return { filter, before }
  },
})

const propagated: readonly Edit[] = [{ op: 'set', path: ['spec', 'hostNetwork'], value: true }]

const kindUnknown =
  'hostnetworkpropagation: whether the pool of this node is a host-network pool is not known yet'
