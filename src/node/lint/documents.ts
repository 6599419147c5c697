/** The sources of the rules. */
export const documents = {
  proposal:
    'https://github.com/openyurtio/openyurt/blob/master/docs/proposals/20230524-support-nodepool-with-host-network-mode.md',
  withdrawal: 'https://github.com/openyurtio/openyurt/issues/1935',
  podDns:
    'https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-s-dns-policy',
  podSecurity: 'https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline',
  assigning: 'https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/',
  daemonSet:
    'https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled',
  podApi: 'https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/',
  rolling:
    'https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment',
  kubelet: 'https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/',
  cni: 'https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/network-plugins/',
  ports: 'https://kubernetes.io/docs/reference/networking/ports-and-protocols/',
} as const
