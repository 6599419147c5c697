import type {
  Cursor,
  Edit,
  Filter,
  FilterDefinition,
  ShownObject,
} from '../src/hub/filter/filter.ts'
import {
  mayBePropagated,
  verdictForNewPod,
  verdictFromStatus,
} from '../src/hub/filter/host-network/rule.ts'
import type {
  PodVerdict,
  NetworkVerdict,
  NetworkVerdicts,
} from '../src/hub/filter/host-network/verdicts.ts'
import type { Inputs } from '../src/hub/filter/inputs.ts'
import { serviceUnavailable, StatusError } from '../src/api/kube/status.ts'

/**
 * Shows the kubelet the pods of a host-network pool on the host's network, whatever the API says of
 * them (OpenYurt 1.4, pkg/yurthub/filter/ hostnetworkpropagation). A kubelet makes a pod anew whose
 * network changes under it: how a pod was first shown, in whatever mode, it stays.
 */
export const hostnetworkpropagation = (
  verdicts: NetworkVerdicts,
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
  // Where it is not known what a pod was shown as, it is not made worse by not being shown at all.
  onError: 'pass',
  // What is needed is watched for: not where the filter is off.
  needs: propagation === 'off' ? ['nodeName', 'propagation'] : ['nodeName', 'propagation', 'pool'],
  actsWhenDisabled: true,
  create({ nodeName, ...inputs }) {
    const anew = verdictForNewPod(inputs)
    const verdictOn = (pod: Cursor, uid: string): NetworkVerdict | 'unknown' | undefined => {
      if (!mayBePropagated(pod, nodeName)) return undefined
      const known = verdicts.of(uid) ?? verdictFromStatus(pod)
      return known ?? (verdicts.mayHaveBeenShown(uid) ? 'unchanged' : anew) ?? 'unknown'
    }
    const look = (verdict: NetworkVerdict | 'unknown' | undefined): ReturnType<Filter> =>
      verdict === 'propagated' ? propagated : 'leave'
    if (inputs.propagation === 'off' && !verdicts.areKept) return undefined
    const before = (pods: readonly ShownObject[]): Promise<void> | undefined => {
      const judged: PodVerdict[] = []
      for (const { cursor, uid } of pods) {
        const verdict = verdicts.of(uid) ?? unlessUnreadable(() => verdictOn(cursor, uid))
        if (verdict === 'unknown') throw new StatusError(serviceUnavailable(kindUnknown))
        if (verdict !== undefined && uid !== '') judged.push([uid, verdict])
      }
      return verdicts.settle(judged)
    }
    // The answer to a deletion is a Status.
    const filter: Filter = (pod) =>
      pod.kind === 'Pod' ? look(verdictOn(pod, uidOf(pod))) : 'leave'
    return { filter, before }
  },
})

const propagated: readonly Edit[] = [{ op: 'set', path: ['spec', 'hostNetwork'], value: true }]

const uidOf = (pod: Cursor): string => String(pod.value(['metadata', 'uid']) ?? '')

const kindUnknown =
  'hostnetworkpropagation: whether the pool of this node is a host-network pool has never been known'

/** What cannot be read is the filter's to fail at, which is counted. */
function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
