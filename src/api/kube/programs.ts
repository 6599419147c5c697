/** Programs that run on nodes and consoles, by the names in their User-Agents. */
export const knownPrograms: ReadonlySet<string> = new Set(
  `
  kubelet kube-proxy kubectl coredns flanneld kube-router cilium-agent
  calico-node felix multus raven-agent-ds yurttunnel-agent yurthub curl
  prometheus node-problem-detector ingress-nginx-controller nginx-ingress-controller
`
    .trim()
    .split(/\s+/),
)
