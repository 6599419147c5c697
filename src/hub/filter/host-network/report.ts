import { TimeSlices } from '../../../base/time-slices.ts'
import type { Cursor } from '../../../api/codec/cursor.ts'
import { reservedFor, type ReservedPort } from '../../../api/kube/node-ports.ts'
import type { Inputs } from '../inputs.ts'
import { portsOf, type DeclaredPort } from './ports.ts'
import { mayBePropagated, shownAnew, shownByStatus } from './rule.ts'
import type { NetworkVerdict, NetworkVerdicts } from './verdicts.ts'

/**
 * The network on which the kubelet is shown a pod: the host's because the pod asks for it, or all
 * the same, or the pod network.
 */
export type ShownNetwork = 'host' | 'propagated' | 'pod'

/** A port that a pod on the host's network shares with something else on the node. */
export interface PortClash {
  readonly port: number
  readonly protocol: string
  /** Pods by namespace and name, or what a node usually has there. */
  readonly with: string
}

export interface PodOnNode {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly network: ShownNetwork
  /** What has been settled for as long as the pod lives; absent: nothing, or it needs nothing. */
  readonly verdict?: NetworkVerdict
  /**
   * What `on` makes of such a pod when it is first shown; 'unknown' where the kind of the pool has
   * never been known.
   */
  readonly anew: 'propagated' | 'unchanged' | 'unknown'
  readonly ports: readonly DeclaredPort[]
  /** On the host's network, where `anew` or `network` has it there. */
  readonly clashes: readonly PortClash[]
}

/**
 * What becomes of the pods of this node's kubelet, and would with `--host-network-propagation=on`.
 */
export interface HostNetworkReport {
  readonly mode: Inputs['propagation']
  /** The name of the node's pool; absent: it is in none, or not known. */
  readonly pool?: string
  readonly hostNetworkPool: boolean | 'unknown'
  /** `undefined` in memory, absent in JSON: they were never listed. */
  readonly pods?: readonly PodOnNode[]
}

export interface ReportParts {
  readonly inputs: Pick<Inputs, 'nodeName' | 'propagation' | 'pool'>
  /** As the cloud has them. */
  readonly pods: Iterable<{ readonly cursor: Cursor; readonly uid: string }> | undefined
  readonly verdictOf: NetworkVerdicts['of']
  readonly mayHaveBeenShown: NetworkVerdicts['mayHaveBeenShown']
  /** Ports of the hub. */
  readonly reserved: readonly ReservedPort[]
}

/** Goes through the pods in slices. Rejects, as cursors throw, where a pod cannot be read. */
export async function hostNetworkReport(parts: ReportParts): Promise<HostNetworkReport> {
  const { inputs, pods } = parts
  const { pool, propagation: mode } = inputs
  return {
    mode,
    ...(pool && { pool: pool.name }),
    hostNetworkPool: pool === null ? false : (pool?.hostNetwork ?? 'unknown'),
    ...(pods && { pods: withClashes(await found(pods, parts), parts.reserved) }),
  }
}

type Found = Omit<PodOnNode, 'clashes'> & { readonly ended: boolean }

async function found(
  pods: NonNullable<ReportParts['pods']>,
  parts: ReportParts,
): Promise<readonly Found[]> {
  const slices = new TimeSlices()
  const all: Found[] = []
  for (const pod of pods) {
    all.push(onNode(pod, parts))
    await slices.pause()
  }
  return all
}

function onNode(
  { cursor, uid }: { readonly cursor: Cursor; readonly uid: string },
  { inputs, verdictOf, mayHaveBeenShown }: ReportParts,
): Found {
  const may = mayBePropagated(cursor, inputs.nodeName)
  const verdict = may ? verdictOf(uid) : undefined
  const asked = cursor.value(['spec', 'hostNetwork']) === true
  const known = verdict ?? shownByStatus(cursor)
  const shown =
    may && (known ?? (mayHaveBeenShown(uid) ? 'unchanged' : shownAnew(inputs))) === 'propagated'
  const phase = cursor.value(['status', 'phase'])
  return {
    namespace: cursor.namespace,
    name: cursor.name,
    uid,
    network: asked ? 'host' : shown ? 'propagated' : 'pod',
    ...(verdict && { verdict }),
    anew: may ? (shownAnew({ ...inputs, propagation: 'on' }) ?? 'unknown') : 'unchanged',
    ports: portsOf(cursor),
    ended: phase === 'Succeeded' || phase === 'Failed',
  }
}

/**
 * Clashes are told of pods that are propagated, or would be: whoever asks for the host's network
 * was placed by its ports.
 */
function withClashes(
  all: readonly Found[],
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
  return all.map(({ ended, ...pod }) => {
    const mayClash = !ended && (pod.network === 'propagated' || pod.anew === 'propagated')
    const clashes = mayClash && pod.network !== 'host' ? clashesOf(pod, taken, reserved) : []
    return { ...pod, clashes }
  })
}

function clashesOf(
  pod: Omit<Found, 'ended'>,
  taken: ReadonlyMap<string, ReadonlySet<string>>,
  reserved: readonly ReservedPort[],
): readonly PortClash[] {
  return [...portsOnHost(pod)].flatMap(([key, { port, protocol }]) => {
    const others = [...(taken.get(key) ?? [])].filter((name) => name !== nameOf(pod))
    const use = reservedFor(port, protocol, reserved)
    return [...others, ...(use === undefined ? [] : [use])].map((each) => ({
      port,
      protocol,
      with: each,
    }))
  })
}

/**
 * What a pod takes of the host's ports: on the host's network all that it declares, else what it
 * has forwarded to it.
 */
function portsOnHost({ network, anew, ports }: Omit<Found, 'ended'>) {
  const onHost = network !== 'pod' || anew === 'propagated'
  return new Map(
    ports.flatMap(({ containerPort, hostPort, protocol }) => {
      const port = onHost ? containerPort : hostPort
      return port === 0 ? [] : [[`${port}/${protocol}`, { port, protocol }] as const]
    }),
  )
}

const nameOf = ({ namespace, name }: Pick<PodOnNode, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`
