/** A port that a program of the node itself usually uses. */
export interface ReservedPort {
  readonly port: number
  readonly protocol: string
  readonly use: string
}

const tcp = (port: number, use: string): ReservedPort => ({ port, protocol: 'TCP', use })

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
  tcp(6443, 'an API server'),
  tcp(9099, 'the health of a network plugin'),
  tcp(9890, 'a network plugin'),
  tcp(10248, 'the health of the kubelet'),
  tcp(10249, 'metrics of kube-proxy'),
  tcp(10250, 'the kubelet'),
  tcp(10256, 'the health of kube-proxy'),
]

/** Services of type NodePort (kube-apiserver --service-node-port-range). */
const nodePorts = { first: 30_000, last: 32_767, use: 'services of type NodePort' }

/**
 * The usual user of a port on a node; `undefined` if none is known. `more` are the ports of the
 * hub.
 */
export function reservedFor(
  port: number,
  protocol: string,
  more: readonly ReservedPort[],
): string | undefined {
  if (port >= nodePorts.first && port <= nodePorts.last) return nodePorts.use
  const all = [...more, ...reserved]
  return all.find((each) => each.port === port && each.protocol === protocol)?.use
}
