import { TimeSlices } from '../../../base/time-slices.ts'
import type { Cursor, Path } from '../../../api/codec/cursor.ts'
import { isTerminal } from '../../../api/kube/pod.ts'
import { reservedFor, type ReservedPort } from '../../../api/kube/node-ports.ts'
import { shownAs } from '../../../../filters/hostnetworkpropagation.ts'
import type { Inputs } from '../../filter/inputs.ts'

/**
 * The network on which the kubelet gets a pod: the host's because the pod requests it, the host's
 * by propagation, or the pod network.
 */
export type ShownNetwork = 'host' | 'propagated' | 'pod'

/** A port that a container declares. */
interface DeclaredPort {
  readonly container: string
  readonly containerPort: number
  /** 0: none. */
  readonly hostPort: number
  readonly protocol: string
}

/** A port that a pod on the host's network shares with another user of that port on the node. */
export interface PortClash {
  readonly port: number
  readonly protocol: string
  /** Pods as `namespace/name`, or the usual user of the port on a node. */
  readonly with: string
}

export interface PodOnNode {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly network: ShownNetwork
  readonly ports: readonly DeclaredPort[]
  /** Clashes on the host's network, of a propagated pod. */
  readonly clashes: readonly PortClash[]
}

/** The pods of this node's kubelet, and the network of each. */
export interface HostNetworkReport {
  readonly mode: Inputs['propagation']
  /** The name of the node's pool; absent: none, or unknown. */
  readonly pool?: string
  readonly hostNetworkPool: boolean | 'unknown'
  /** Absent: pods were never listed. */
  readonly pods?: readonly PodOnNode[]
}

export interface HostNetworkReportOptions {
  readonly inputs: Pick<Inputs, 'nodeName' | 'propagation' | 'pool'>
  /** Unfiltered. */
  readonly pods: Iterable<{ readonly cursor: Cursor; readonly uid: string }> | undefined
  /** The ports of the hub. */
  readonly reserved: readonly ReservedPort[]
}

/** Reports on the pods in time slices. Rejects where a pod cannot be read. */
export async function hostNetworkReport(
  parts: HostNetworkReportOptions,
): Promise<HostNetworkReport> {
  const { inputs, pods } = parts
  const { pool, propagation: mode } = inputs
  return {
    mode,
    ...(pool && { pool: pool.name }),
    hostNetworkPool: pool === null ? false : (pool?.hostNetwork ?? 'unknown'),
    ...(pods && { pods: withClashes(await reportedPods(pods, parts), parts.reserved) }),
  }
}

interface ReportedPod extends Omit<PodOnNode, 'clashes'> {
  readonly ended: boolean
}

async function reportedPods(
  pods: NonNullable<HostNetworkReportOptions['pods']>,
  parts: HostNetworkReportOptions,
): Promise<readonly ReportedPod[]> {
  const slices = new TimeSlices()
  const all: ReportedPod[] = []
  for (const pod of pods) {
    all.push(reportPod(pod, parts))
    await slices.pause()
  }
  return all
}

function reportPod(
  { cursor, uid }: { readonly cursor: Cursor; readonly uid: string },
  { inputs }: HostNetworkReportOptions,
): ReportedPod {
  const requested = cursor.value(['spec', 'hostNetwork']) === true
  const isPropagated = shownAs(cursor, inputs) === 'propagated'
  return {
    namespace: cursor.namespace,
    name: cursor.name,
    uid,
    network: requested ? 'host' : isPropagated ? 'propagated' : 'pod',
    ports: portsOf(cursor),
    ended: isTerminal(cursor.value(['status', 'phase'])),
  }
}

/**
 * Reports clashes of propagated pods. The scheduler placed the pods that request the host's network
 * by their ports.
 */
function withClashes(
  all: readonly ReportedPod[],
  reserved: readonly ReservedPort[],
): readonly PodOnNode[] {
  const taken = new Map<string, Set<string>>()
  for (const pod of all) {
    if (pod.ended) continue
    for (const [key] of portsOnHost(pod)) {
      const pods = taken.get(key) ?? new Set()
      taken.set(key, pods.add(nameOf(pod)))
    }
  }
  return all.map((pod) => {
    const { ended, ...reported } = pod
    const mayClash = !ended && pod.network === 'propagated'
    return { ...reported, clashes: mayClash ? clashesOf(pod, taken, reserved) : [] }
  })
}

function clashesOf(
  pod: ReportedPod,
  taken: ReadonlyMap<string, ReadonlySet<string>>,
  reserved: readonly ReservedPort[],
): readonly PortClash[] {
  return [...portsOnHost(pod)].flatMap(([key, { port, protocol }]) => {
    const others = [...(taken.get(key) ?? [])].filter((name) => name !== nameOf(pod))
    const use = reservedFor(port, protocol, reserved)?.use
    return [...others, ...(use === undefined ? [] : [use])].map((each) => ({
      port,
      protocol,
      with: each,
    }))
  })
}

/**
 * The host ports of a pod: on the host's network all that it declares, otherwise its `hostPort`s.
 */
function portsOnHost({ network, ports }: ReportedPod) {
  return new Map(
    ports.flatMap(({ containerPort, hostPort, protocol }) => {
      const port = network === 'pod' ? hostPort : containerPort
      return port === 0 ? [] : [[`${port}/${protocol}`, { port, protocol }] as const]
    }),
  )
}

const nameOf = ({ namespace, name }: Pick<PodOnNode, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`

/**
 * The ports that a pod's containers declare, including sidecars (init containers that keep
 * running).
 */
function portsOf(pod: Cursor): readonly DeclaredPort[] {
  const containers = inListAt(pod, ['spec', 'containers'])
  const sidecars = inListAt(pod, ['spec', 'initContainers']).filter(
    (at) => pod.value([...at, 'restartPolicy']) === 'Always',
  )
  return [...containers, ...sidecars].flatMap((container) =>
    inListAt(pod, [...container, 'ports']).map((at) => ({
      container: String(pod.value([...container, 'name']) ?? ''),
      containerPort: Number(pod.value([...at, 'containerPort']) ?? 0),
      hostPort: Number(pod.value([...at, 'hostPort']) ?? 0),
      protocol: String(pod.value([...at, 'protocol']) ?? 'TCP'),
    })),
  )
}

const inListAt = (pod: Cursor, path: Path): readonly Path[] =>
  Array.from({ length: pod.count(path) }, (_, at) => [...path, at])
