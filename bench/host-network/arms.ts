import { keptOffHostNetwork } from '../../src/cluster/admission/pod.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, withAt } from '../../src/api/kube/json-at.ts'
import { excludeAnnotation, nodePoolLabel } from '../../src/api/kube/node-pool.ts'

/** What the hubs of a pool's nodes do with pods that do not ask for the host's network. */
export type Propagation = 'off' | 'on'

/** One way to treat pods that do not ask for the host network, or that do. */
interface Approach {
  readonly name: string
  readonly title: string
  readonly propagation: Propagation
  /** Whose hub the nodes have: ours, or that of OpenYurt 1.4, from which the legacy filter is. */
  readonly hub: 'nodehub' | 'yurthub'
  /** Whether admission gives pods the network of the pool that they name, which is opt-in. */
  readonly admitsToHostNetwork: boolean
  /** What the owner of a pod writes. */
  readonly written: (pod: JsonObject) => JsonObject
  /**
   * What becomes of it at admission, defaults included: for the model alone, a real API server asks
   * real webhooks.
   */
  readonly admitted: (pod: JsonObject) => JsonObject
}

/** An approach, and the nodes that it is tried on. */
export interface Arm extends Approach {
  /** Whether the nodes are of a host-network pool. */
  readonly hostNetworkNodes: boolean
  /** Whether the nodes have a CNI plugin that gives pods a network; else loopback alone. */
  readonly podNetwork: boolean
}

const asItIs = (pod: JsonObject): JsonObject => pod

const onHostNetwork = (pod: JsonObject): JsonObject => withAt(pod, ['spec', 'hostNetwork'], true)

/**
 * The API server's own: with hostNetwork each declared port is one of the node (SetDefaults_Pod).
 */
const withHostPorts = (pod: JsonObject): JsonObject =>
  withAt(
    pod,
    ['spec', 'containers'],
    listAt(pod, 'spec', 'containers').map((container) => ({
      ...(container as JsonObject),
      ports: listAt(container, 'ports').map((port) => ({
        ...(port as JsonObject),
        hostPort: (port as JsonObject)['containerPort'] ?? 0,
      })),
    })),
  )

/** The pool of the nodes that have the host's network. */
export const pool = 'compared'

const usual = {
  propagation: 'off',
  hub: 'nodehub',
  admitsToHostNetwork: false,
  written: asItIs,
  admitted: asItIs,
} as const

/** What can be done about pods on the nodes of a host-network pool. */
const approaches: readonly Approach[] = [
  {
    ...usual,
    name: 'legacy',
    title: 'legacy filter on: kubelets are shown hostNetwork',
    propagation: 'on',
  },
  { ...usual, name: 'plain', title: 'newer approach, pods without annotation' },
  {
    ...usual,
    name: 'excluded',
    title: 'newer approach, pods with the exclude annotation',
    written: (pod) => withAt(pod, ['metadata', 'annotations'], { [excludeAnnotation]: 'true' }),
    admitted: keptOffHostNetwork,
  },
  {
    ...usual,
    name: 'explicit',
    title: 'newer approach, pods that say hostNetwork',
    written: onHostNetwork,
    admitted: withHostPorts,
  },
  {
    ...usual,
    name: 'admission',
    title: 'newer approach, hostNetwork given at admission (opt-in) to pods that name the pool',
    admitsToHostNetwork: true,
    written: (pod) => withAt(pod, ['spec', 'nodeSelector'], { [nodePoolLabel]: pool }),
    admitted: (pod) => withHostPorts(onHostNetwork(pod)),
  },
]

export const arms: readonly Arm[] = [
  {
    ...usual,
    name: 'standard',
    title: 'standard nodes with a CNI plugin, for comparison',
    hostNetworkNodes: false,
    podNetwork: true,
  },
  {
    ...usual,
    name: 'yurthub-1.4',
    title: "the legacy filter of OpenYurt's own hub, version 1.4",
    propagation: 'on',
    hub: 'yurthub',
    hostNetworkNodes: true,
    podNetwork: false,
  },
  ...approaches.map((approach) => ({ ...approach, hostNetworkNodes: true, podNetwork: false })),
  ...approaches.map((approach) => ({
    ...approach,
    name: `${approach.name}-cni`,
    title: `${approach.title}; the pool's nodes have a CNI plugin`,
    hostNetworkNodes: true,
    podNetwork: true,
  })),
]
