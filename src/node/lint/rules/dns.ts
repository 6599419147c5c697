import { optionalTextAt } from '../../../api/kube/json-at.ts'
import { documents } from '../documents.ts'
import { placementOf } from '../placement.ts'
import { inSpec, onHostNetwork, type PodSubject } from '../pod.ts'
import type { Rule } from '../rule.ts'

const policyOf = (pod: PodSubject): string =>
  optionalTextAt(pod.spec, 'dnsPolicy') ?? 'ClusterFirst'

/**
 * Without CoreDNS and kube-proxy no name of the cluster is resolved; and no other name either, as
 * the pod does not use the node's resolvers.
 */
export const clusterDnsOnHostNetwork: Rule = {
  id: 'cluster-dns-on-host-network-pool',
  level: 'error',
  title: 'dnsPolicy ClusterFirstWithHostNet on a host-network pool',
  reason:
    'On the nodes of a host-network pool runs no kube-proxy, so that the address of the cluster DNS leads nowhere: every name the pod looks up fails, those outside the cluster included.',
  document: documents.podDns,
  *checkPod(pod, context) {
    if (policyOf(pod) !== 'ClusterFirstWithHostNet') return
    const { hostNetwork, standard, unknown } = placementOf(pod, context)
    if (hostNetwork.length === 0) return
    const path = inSpec(pod, 'dnsPolicy')
    const pools = hostNetwork.join(', ')
    if (standard || unknown.length > 0) {
      yield {
        path,
        level: 'warning',
        message: `dnsPolicy ClusterFirstWithHostNet is right on standard nodes, but the pod may also run in ${pools}, a host-network pool, where no name is resolved with it: keep it to one of the two`,
      }
    } else {
      yield {
        path,
        message: `the pod runs in ${pools}, a host-network pool, where dnsPolicy ClusterFirstWithHostNet resolves no name: use Default`,
      }
    }
  },
}

export const hostDnsOnStandardNode: Rule = {
  id: 'host-dns-on-standard-node',
  level: 'warning',
  title: 'hostNetwork without a dnsPolicy on a standard node',
  reason:
    'With hostNetwork the kubelet takes dnsPolicy ClusterFirst, which is the default, for Default without a word: names of services are not resolved.',
  document: documents.podDns,
  *checkPod(pod, context) {
    if (!onHostNetwork(pod) || policyOf(pod) !== 'ClusterFirst' || pod.fragment) return
    const { standard, unknown } = placementOf(pod, context)
    if (!standard || unknown.length > 0) return
    const given = optionalTextAt(pod.spec, 'dnsPolicy') !== undefined
    yield {
      path: inSpec(pod, given ? 'dnsPolicy' : 'hostNetwork'),
      message:
        'with hostNetwork this pod is given the resolvers of its node: on a standard node say dnsPolicy ClusterFirstWithHostNet where it needs names of the cluster, else Default',
    }
  },
}
