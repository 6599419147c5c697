import { valueAt, optionalTextAt } from '../../../api/kube/json-at.ts'
import { isExcluded } from '../../../api/kube/pod.ts'
import { excludeAnnotation, hostNetworkLabel, nodePoolLabel } from '../../../api/kube/node-pool.ts'
import type { PoolFacts } from '../context.ts'
import { documents } from '../documents.ts'
import { placementOf } from '../placement.ts'
import { inMetadata, inSpec, onHostNetwork } from '../pod.ts'
import type { Rule } from '../rule.ts'

export const noPodNetwork: Rule = {
  id: 'no-pod-network',
  level: 'error',
  title: 'a pod without hostNetwork that can land on a host-network pool',
  reason:
    'There is no pod network on such a node: the sandbox gets no address and is made again for ever, or, with the legacy filter, the pod is put on the host network although the API says that it is not.',
  document: documents.withdrawal,
  *checkPod(pod, context) {
    if (onHostNetwork(pod) || pod.fragment) return
    const { hostNetwork, standard, unknown } = placementOf(pod, context)
    if (hostNetwork.length === 0) return
    const only = !standard && unknown.length === 0
    yield {
      path: inSpec(pod),
      level: only ? 'error' : 'warning',
      message: only
        ? `the pod can run in ${hostNetwork.join(', ')} alone, where there is no pod network: set hostNetwork: true`
        : `the pod can land in ${hostNetwork.join(', ')}, where there is no pod network: set hostNetwork: true, or annotate the pod ${excludeAnnotation}: "true"`,
    }
  },
}

export const unknownPool: Rule = {
  id: 'unknown-pool',
  level: 'note',
  title: 'a pool of which nothing is known here',
  reason:
    'What is right for a pod depends on the kind of its pool, and neither the given files nor --pool say which it is.',
  document: documents.proposal,
  *checkPod(pod, context) {
    for (const name of placementOf(pod, context).unknown) {
      const selected = optionalTextAt(pod.spec, 'nodeSelector', nodePoolLabel) === name
      yield {
        path: selected ? inSpec(pod, 'nodeSelector', nodePoolLabel) : inSpec(pod, 'affinity'),
        message: `nothing says whether pool ${name} is a host-network pool: give its NodePool, or --pool ${name}=host-network or ${name}=standard`,
      }
    }
  },
}

export const excludeAnnotationValue: Rule = {
  id: 'exclude-annotation',
  level: 'error',
  title: `annotation ${excludeAnnotation} that has no effect, or none that is meant`,
  reason:
    'Admission looks for exactly "true" on the pod itself; with anything else, or on the object that makes the pods, the pod is scheduled anywhere.',
  document: documents.withdrawal,
  *checkPod(pod) {
    const value = valueAt(pod.metadata, 'annotations', excludeAnnotation)
    const path = inMetadata(pod, 'annotations', excludeAnnotation)
    if (typeof value === 'boolean') {
      yield {
        path,
        message: `annotations are texts, the API server refuses this: write "${value}"`,
      }
    } else if (value === 'false') {
      yield {
        path,
        level: 'warning',
        message: 'only "true" has an effect: leave the annotation out',
      }
    } else if (value !== undefined && value !== 'true') {
      yield {
        path,
        message: `${JSON.stringify(value)} has no effect: the annotation must be exactly "true"`,
      }
    } else if (value === 'true' && onHostNetwork(pod)) {
      yield {
        path,
        level: 'warning',
        message:
          'the pod is on the host network and needs no pod network: the annotation keeps it off nodes on which it would run',
      }
    }
    if (pod.base.length === 0) return
    if (
      valueAt(pod.owner, 'metadata', 'annotations', excludeAnnotation) !== undefined &&
      !isExcluded(pod)
    ) {
      yield {
        path: ['metadata', 'annotations', excludeAnnotation],
        message: `on the ${pod.kind} the annotation has no effect: it belongs into the metadata of its pods' template`,
      }
    }
  },
}

export const neverScheduled: Rule = {
  id: 'never-scheduled',
  level: 'error',
  title: 'a pod that selects a host-network pool and is kept off it',
  reason:
    'Affinity from the exclude annotation is added to the selectors of the pod: no node meets both.',
  document: documents.assigning,
  *checkPod(pod, context) {
    if (!isExcluded(pod)) return
    const { hostNetwork, standard, unknown } = placementOf(pod, context)
    const without = placementOf({ ...pod, metadata: {} }, context)
    const nowhere = hostNetwork.length === 0 && !standard && unknown.length === 0
    if (!nowhere || without.hostNetwork.length === 0) return
    yield {
      path: inMetadata(pod, 'annotations', excludeAnnotation),
      message: `the pod can run in ${without.hostNetwork.join(', ')} alone, and the annotation keeps it off: it stays Pending`,
    }
  },
}

/** Without any known pool: the annotation suggests that there is a host-network pool. */
const anyHostNetworkPool = new Map<string, PoolFacts>([
  ['a host-network pool, if there is one', { hostNetwork: true }],
])

export const excludedDaemonSet: Rule = {
  id: 'excluded-daemonset',
  level: 'warning',
  title: 'a DaemonSet whose pods are kept off host-network pools by the annotation alone',
  reason:
    'The controller of DaemonSets makes a pod for each node that the template allows, and knows nothing of what admission adds to the pod: on each host-network node one stays Pending.',
  document: documents.daemonSet,
  *checkPod(pod, context) {
    if (pod.kind !== 'DaemonSet' || !isExcluded(pod)) return
    const isSupposed = context.pools.size === 0
    const pools = isSupposed ? anyHostNetworkPool : context.pools
    const { hostNetwork } = placementOf({ ...pod, metadata: {} }, { ...context, pools })
    if (hostNetwork.length === 0) return
    yield {
      path: inMetadata(pod, 'annotations', excludeAnnotation),
      ...(isSupposed && { level: 'note' }),
      message: `for each node of ${hostNetwork.join(', ')} one pod stays Pending: write the required node affinity ${hostNetworkLabel} NotIn ["true"] into the template`,
    }
  },
}
