/** A port that a program of the node itself usually uses. */
export interface ReservedPort {
  readonly port: number
  readonly protocol: string
  readonly use: string
  /**
   * The node, or the cluster, does not work where another program has the port. Absent: it is only
   * likely to be taken.
   */
  readonly isEssential?: true
}

const tcp = (port: number, use: string): ReservedPort => ({ port, protocol: 'TCP', use })
const essential = (port: number, use: string): ReservedPort => ({
  ...tcp(port, use),
  isEssential: true,
})

/**
 * Ports that a node usually uses, whatever its pods declare. The hub's own ports come from its
 * configuration.
 */
const reserved: readonly ReservedPort[] = [
  tcp(22, 'ssh'),
  tcp(53, 'DNS'),
  { port: 53, protocol: 'UDP', use: 'DNS' },
  tcp(80, 'HTTP'),
  tcp(443, 'HTTPS'),
  essential(6443, 'an API server'),
  essential(9099, 'the health of a network plugin'),
  essential(9890, 'a network plugin'),
  essential(10248, 'the health of the kubelet'),
  essential(10249, 'metrics of kube-proxy'),
  essential(10250, 'the kubelet'),
  essential(10256, 'the health of kube-proxy'),
]

/** Services of type NodePort (kube-apiserver --service-node-port-range). */
const nodePorts = {
  first: 30_000,
  last: 32_767,
  use: 'services of type NodePort (30000 to 32767)',
}

/**
 * The usual user of a port on a node; `undefined` if none is known. `more` are the ports of the
 * hub.
 */
export function reservedFor(
  port: number,
  protocol: string,
  more: readonly ReservedPort[],
): ReservedPort | undefined {
  const all = [...more, ...reserved]
  const found = all.find((each) => each.port === port && each.protocol === protocol)
  if (found) return found
  const isNodePort = port >= nodePorts.first && port <= nodePorts.last
  return isNodePort ? { port, protocol, use: nodePorts.use, isEssential: true } : undefined
}
