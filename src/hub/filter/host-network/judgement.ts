import { portName, type HostPort } from '../../../api/kube/host-network-pod.ts'
import { reservedFor, type ReservedPort } from '../../../api/kube/node-ports.ts'
import { namespacedName } from '../../../api/kube/object.ts'
import type { PodFacts } from './pod-facts.ts'
import type { NetworkVerdict } from './verdicts.ts'

/** A verdict of mode guarded, for people and programs. */
export interface Judgement {
  /** 'unchanged': refused first, and no longer waiting. */
  readonly verdict: NetworkVerdict
  /** As the reason of a condition. */
  readonly reason: string
  /** A sentence, with what would help. */
  readonly message: string
}

export interface PortUsers {
  /** The pod that holds a port of the host, by `portName`. */
  readonly holderOf: (port: string) => PodFacts | undefined
  /** The ports with a listener on the host; `undefined`: the hub cannot see them. */
  readonly listeners: () => ReadonlySet<string> | undefined
  /** The ports of the hub. */
  readonly reserved: readonly ReservedPort[]
}

/** Whether a pod may be put on the host's network now. */
export function judge(pod: PodFacts, users: PortUsers): Judgement {
  if (pod.obstacle) {
    const { reason, message } = pod.obstacle
    return { verdict: 'refused', reason, message: `${message}. ${excluded}` }
  }
  for (const port of pod.ports) {
    const conflict = conflictAt(port, users)
    if (conflict) return { verdict: 'refused', ...conflict }
  }
  return propagated(pod, users)
}

/** The judgement on a pod that may be put on the host's network, or has that verdict already. */
export function propagated(
  pod: PodFacts,
  users: Pick<PortUsers, 'listeners' | 'reserved'>,
): Judgement {
  const unseen = pod.ports.length > 0 && users.listeners() === undefined
  const notes = [
    ...(unseen ? ['the hub cannot see which ports the host listens on'] : []),
    ...pod.ports.flatMap((port) => likelyTaken(port, users)),
    ...(pod.controllerKind === 'StatefulSet'
      ? [
          'it belongs to a StatefulSet, whose pods have the address of their node and no name of their own',
        ]
      : []),
  ]
  const shown = pod.ports.length === 0 ? 'it declares no port' : `it holds ${names(pod.ports)}`
  const [warning, ...more] = notes
  return {
    verdict: 'propagated',
    reason: warning === undefined ? 'Propagated' : 'PropagatedWithWarning',
    message: [
      `the pod runs on the host's network; ${shown}`,
      ...(warning === undefined ? [] : [warning, ...more]),
    ].join('; '),
  }
}

/** The judgement on a pod whose status shows that it runs on the host's network already. */
export const runsOnHost = ({ ports }: PodFacts): Judgement => ({
  verdict: 'propagated',
  reason: 'RunsOnHostNetwork',
  message: `the pod already runs on the host's network; it holds ${names(ports)}`,
})

/** The reason of a pod that was refused, and runs on a network of its own since. */
export const keptReason = 'KeptOnPodNetwork'

export const keptOnPodNetwork: Judgement = {
  verdict: 'unchanged',
  reason: keptReason,
  message:
    'the pod was refused, has started on the pod network, and stays there until it is gone. A pod that takes its place gets a verdict of its own',
}

const excluded =
  'Exclude the pod from host-network pools (annotation apps.openyurt.io/exclude-host-network-pool: "true"), or set hostNetwork: true where it may have the host\'s network'

const waits =
  'The pod is propagated when the port is free. With hostNetwork: true and the port declared, the scheduler finds a node on which it is free; a Deployment needs maxSurge: 0'

function conflictAt(
  port: HostPort,
  { holderOf, listeners, reserved }: PortUsers,
): Pick<Judgement, 'reason' | 'message'> | undefined {
  const name = portName(port)
  const user = reservedFor(port.port, port.protocol, reserved)
  if (user?.isEssential) {
    const message = `port ${name} belongs to ${user.use}. Choose another port`
    return { reason: 'PortReserved', message }
  }
  const holder = holderOf(name)
  if (holder) {
    const message = `port ${name} is held by pod ${namespacedName(holder)}. ${waits}`
    return { reason: 'PortHeld', message }
  }
  if (!listeners()?.has(name)) return undefined
  const message = `a program of the host that is no known pod uses port ${name}. ${waits}`
  return { reason: 'PortInUse', message }
}

function likelyTaken(
  { port, protocol }: HostPort,
  { reserved }: Pick<PortUsers, 'reserved'>,
): readonly string[] {
  const use = reservedFor(port, protocol, reserved)?.use
  return use === undefined
    ? []
    : [`port ${portName({ port, protocol })} is usual for ${use} on a node`]
}

const names = (ports: readonly HostPort[]): string =>
  ports.length === 0 ? 'no port' : ports.map(portName).join(', ')
