import { reservedFor, type ReservedPort } from '../../../api/kube/node-ports.ts'
import { options } from '../../../config/options.ts'
import { documents } from '../documents.ts'
import { inSpec, onHostNetwork, portsOf, type Port } from '../pod.ts'
import type { Rule } from '../rule.ts'

export const undeclaredPort: Rule = {
  id: 'undeclared-port',
  level: 'warning',
  title: 'hostNetwork without a declared port',
  reason:
    'The scheduler and the kubelet keep two pods off one port of a node by what the pods declare. A second pod that listens without saying so starts there and crashes, again and again.',
  document: documents.proposal,
  *checkPod(pod) {
    if (!onHostNetwork(pod) || pod.fragment || portsOf(pod).length > 0) return
    yield {
      path: inSpec(pod, 'hostNetwork'),
      message:
        'no container declares a port: if one listens, declare it as containerPort, so that no second pod is put on a node where it is taken',
    }
  },
}

export const hostPortDiffers: Rule = {
  id: 'host-port-differs',
  level: 'error',
  title: 'hostNetwork with a hostPort other than its containerPort',
  reason: 'With hostNetwork there is nothing to map, and the API server refuses the pod.',
  document: documents.podApi,
  *checkPod(pod) {
    if (!onHostNetwork(pod)) return
    for (const { containerPort, hostPort, path } of portsOf(pod)) {
      if (hostPort === containerPort) continue
      yield {
        path: [...path, 'hostPort'],
        message: `with hostNetwork hostPort must be the containerPort, ${containerPort}, or left out; it is ${hostPort}`,
      }
    }
  },
}

/** The ports of a hub, unless its flags name others. */
const ofHub = (['proxy-port', 'proxy-secure-port', 'serve-port'] as const).map(
  (flag): ReservedPort => ({
    port: options[flag].default,
    protocol: 'TCP',
    use: 'the hub',
    isEssential: true,
  }),
)

export const reservedPort: Rule = {
  id: 'reserved-port',
  level: 'error',
  title: 'a port of the node that something else needs',
  reason:
    'The second program at a port cannot listen. Where the first is no pod, the scheduler does not know of it, and the pod crashes on every node.',
  document: documents.ports,
  *checkPod(pod) {
    // The components that the ports are kept for.
    if (pod.namespace === 'kube-system') return
    for (const port of portsOf(pod)) {
      const { hostPort, protocol } = port
      const reserved = reservedFor(hostPort, protocol, ofHub)
      if (reserved === undefined) continue
      const { use, isEssential } = reserved
      yield isEssential
        ? {
            path: where(port),
            message: `port ${hostPort} of a node is that of ${use}: choose another`,
          }
        : {
            path: where(port),
            level: 'warning',
            message: `port ${hostPort} of a node is often that of ${use}: choose another where you can`,
          }
    }
  },
}

const where = ({ path, containerPort, hostPort }: Port) => [
  ...path,
  containerPort === hostPort ? 'containerPort' : 'hostPort',
]

export const samePortTwice: Rule = {
  id: 'same-port-twice',
  level: 'error',
  title: 'two containers of a pod on one port of the node',
  reason: 'The API server refuses a pod that declares one port of its node twice.',
  document: documents.podApi,
  *checkPod(pod) {
    const seen = new Set<string>()
    for (const port of portsOf(pod)) {
      if (port.hostPort === 0) continue
      const key = `${port.protocol} ${port.hostIP} ${port.hostPort}`
      if (seen.has(key)) {
        yield {
          path: where(port),
          message: `another container of the pod declares port ${port.hostPort} (${port.protocol}) already: on the host network they share their ports`,
        }
      }
      seen.add(key)
    }
  },
}

/** The ports of the node that the pod takes, as a message names them. */
export const hostPortsText = (ports: readonly Port[]): string =>
  [...new Set(ports.filter(({ hostPort }) => hostPort > 0).map(({ hostPort }) => hostPort))].join(
    ', ',
  )
