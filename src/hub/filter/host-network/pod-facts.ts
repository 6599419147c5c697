import type { Cursor } from '../../../api/codec/cursor.ts'
import {
  controllerKind,
  hasHadContainer,
  hostPortsOf,
  obstacleIn,
  portsOnHost,
  propagationConditionIn,
  type HostPort,
  type Obstacle,
  type PropagationCondition,
} from '../../../api/kube/host-network-pod.ts'
import { textAt, valueAt } from '../../../api/kube/json-at.ts'
import { mayBePropagated, verdictFromStatus } from './rule.ts'
import type { FinalVerdict } from './verdicts.ts'

/** The facts of a pod of this node that the port ledger decides by. */
export interface PodFacts {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly resourceVersion: string
  readonly createdAt: string
  readonly requestsHost: boolean
  readonly mayBePropagated: boolean
  /** Succeeded or Failed: its containers have released their ports. */
  readonly hasEnded: boolean
  readonly isDeleting: boolean
  /** By its status; see `verdictFromStatus`. */
  readonly evidence: FinalVerdict | undefined
  /** It has, or had, a network or a container: another network would make it anew. */
  readonly hasRun: boolean
  /** The verdict as a hub has reported it. */
  readonly reported: PropagationCondition
  /** Its ports on the host's network. */
  readonly ports: readonly HostPort[]
  /** The ports of the host that it takes on the pod network. */
  readonly hostPorts: readonly HostPort[]
  readonly obstacle: Obstacle | undefined
  readonly controllerKind: string | undefined
}

/** Reads the facts of a pod. Throws where it cannot be read. */
export function podFacts(
  pod: Cursor,
  { uid, resourceVersion }: Pick<PodFacts, 'uid' | 'resourceVersion'>,
  nodeName: string,
): PodFacts {
  const [metadata, spec, status] = ['metadata', 'spec', 'status'].map((part) => pod.json([part]))
  const phase = textAt(status, 'phase')
  return {
    uid,
    namespace: pod.namespace,
    name: pod.name,
    resourceVersion,
    createdAt: textAt(metadata, 'creationTimestamp'),
    requestsHost: valueAt(spec, 'hostNetwork') === true,
    mayBePropagated: mayBePropagated(pod, nodeName),
    hasEnded: phase === 'Succeeded' || phase === 'Failed',
    isDeleting: textAt(metadata, 'deletionTimestamp') !== '',
    evidence: verdictFromStatus(pod),
    reported: propagationConditionIn(status),
    hasRun: textAt(status, 'podIP') !== '' || hasHadContainer(status),
    ports: portsOnHost(spec),
    hostPorts: hostPortsOf(spec),
    obstacle: obstacleIn(spec),
    controllerKind: controllerKind(metadata),
  }
}
