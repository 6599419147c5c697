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
 * Puts the pods of a host-network pool on the host's network for the kubelet, whatever the API says
 * (OpenYurt 1.4, pkg/yurthub/filter/hostnetworkpropagation); in mode guarded only those for which
 * the port ledger finds a place. A kubelet restarts a pod whose network changes: a pod keeps the
 * network with which the kubelet first got it, in every mode, unless it was refused and never ran.
 */
export const hostnetworkpropagation = (
  verdicts: NetworkVerdicts,
  propagation: Inputs['propagation'],
): FilterDefinition<'nodeName' | 'propagation' | 'propagatedLater' | 'pool'> => ({
  name: 'hostnetworkpropagation',
  rules: [
    {
      components: ['kubelet'],
      group: '',
      resources: ['pods'],
      verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
    },
  ],
  // If the verdict on a pod is unknown, withholding the pod would be worse.
  onError: 'pass',
  withholds: false,
  // The hub watches the inputs of a filter: not this one where the filter is off.
  needs: [
    'nodeName',
    'propagation',
    'propagatedLater',
    ...(propagation === 'off' ? [] : (['pool'] as const)),
  ],
  actsWhenDisabled: true,
  create({ nodeName, ...inputs }) {
    const whenNew = verdictForNewPod(inputs)
    const verdictOn = (pod: Cursor, uid: string): NetworkVerdict | 'unknown' | undefined => {
      if (!mayBePropagated(pod, nodeName)) return undefined
      const known = verdicts.of(uid) ?? verdictFromStatus(pod)
      return known ?? (verdicts.mayHaveBeenShown(uid) ? 'unchanged' : whenNew) ?? 'unknown'
    }
    const later = new Set(inputs.propagatedLater)
    const isShown = (uid: string): boolean => !verdicts.isPropagatedLater(uid) || later.has(uid)
    if (inputs.propagation === 'off' && !verdicts.areKept) return undefined
    const isUndecided = (pod: Cursor, uid: string): boolean =>
      verdicts.of(uid) === undefined &&
      unlessUnreadable(() => mayBePropagated(pod, nodeName)) === true
    const before = (pods: readonly ShownObject[]): Promise<void> | undefined => {
      const decisions: PodVerdict[] = []
      const decided = inputs.propagation === 'guarded' && verdicts.judge(pods)
      for (const { cursor, uid } of pods) {
        if (decided === 'needs list' && isUndecided(cursor, uid))
          throw new StatusError(serviceUnavailable(podsUnknown))
        const known = verdicts.of(uid) ?? unlessUnreadable(() => verdictOn(cursor, uid))
        const verdict = known === 'unknown' && decided ? 'unchanged' : known
        if (verdict === 'unknown') throw new StatusError(serviceUnavailable(kindUnknown))
        if (verdict !== undefined && uid !== '') decisions.push([uid, verdict])
      }
      return verdicts.settle(decisions)
    }
    // The answer to a deletion may be a Status.
    const filter: Filter = (pod) => {
      if (pod.kind !== 'Pod') return 'leave'
      const uid = uidOf(pod)
      return verdictOn(pod, uid) === 'propagated' && isShown(uid) ? propagated : 'leave'
    }
    return { filter, before }
  },
})

const propagated: readonly Edit[] = [{ op: 'set', path: ['spec', 'hostNetwork'], value: true }]

const uidOf = (pod: Cursor): string => String(pod.value(['metadata', 'uid']) ?? '')

const kindUnknown =
  'hostnetworkpropagation: whether the pool of this node is a host-network pool is not known yet'

const podsUnknown =
  'hostnetworkpropagation: which pods of this node hold ports is not known before they are listed'

/** The filter fails at an object that cannot be read, and counts it. */
function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
