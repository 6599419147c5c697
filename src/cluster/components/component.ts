import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, objectAt, textAt } from '../../api/kube/json-at.ts'
import { controllerOf } from '../exit-plan/cluster-state.ts'
import { writerOf } from './writer.ts'
import { affinityKeptOff, workloadPlacement, type WorkloadPlacement } from './placement.ts'

export type WorkloadKind = 'DaemonSet' | 'Deployment'

/**
 * A part of the pod network, or of a product that belongs to it, that has no place on a
 * host-network node.
 */
export interface Component {
  readonly kind: WorkloadKind
  readonly namespace: string
  readonly name: string
  /** The product it belongs to. */
  readonly what: string
  readonly placement: WorkloadPlacement
  /** The affinity that keeps its pods off; absent where nothing could be changed. */
  readonly affinity: Json | undefined
  /** The operator or tool that writes it, and may write over a change. */
  readonly writer: string | undefined
  /** Pods that a change of the template replaces, one a node for a DaemonSet. */
  readonly rolls: number
  /** Whether pods are replaced only when they are deleted (updateStrategy OnDelete). */
  readonly onDelete: boolean
}

/** Known products, by patterns for a workload's name and labels. */
const componentPatterns: readonly (readonly [what: string, name: RegExp])[] = [
  ['kube-proxy', /^kube-proxy(-|$)/],
  ['flannel', /^(kube-)?flannel(-|$)|^canal$/],
  ['calico', /^calico-|^csi-node-driver$/],
  ['cilium', /^cilium(-|$)|^hubble-/],
  ['CoreDNS', /^(core|kube)-?dns(-|$)/],
  ['node-local DNS', /^node-local-dns$|^nodelocaldns$/],
  ['weave', /^weave-net$/],
  ['kube-router', /^kube-router$/],
  ['antrea', /^antrea-/],
  ['kube-ovn', /^kube-ovn-|^ovs-ovn$/],
  ['kindnet', /^kindnet$/],
  ['AWS VPC CNI', /^aws-node$/],
  ['multus', /^(kube-)?multus(-|$)/],
  ['raven', /^raven-agent/],
]

/** Reads a DaemonSet or Deployment; `undefined` where it is no known component. */
export function componentOf(kind: WorkloadKind, workload: JsonObject): Component | undefined {
  const labels = objectAt(workload, 'metadata', 'labels')
  const name = textAt(workload, 'metadata', 'name')
  const names = [name, labels['k8s-app'], labels['app.kubernetes.io/name'], labels['app']]
  const found = componentPatterns.find(([, pattern]) =>
    names.some((each) => typeof each === 'string' && pattern.test(each)),
  )
  if (found === undefined) return undefined
  const template = objectAt(workload, 'spec', 'template')
  const controller = controllerOf(workload)
  const count = valueAt(
    workload,
    ...(kind === 'DaemonSet' ? ['status', 'desiredNumberScheduled'] : ['spec', 'replicas']),
  )
  return {
    kind,
    namespace: textAt(workload, 'metadata', 'namespace'),
    name,
    what: found[0],
    placement: workloadPlacement(template),
    affinity: affinityKeptOff(template),
    writer: controller ? `${controller.kind} ${controller.name}` : writerOf(workload),
    rolls: typeof count === 'number' ? count : 0,
    onDelete: textAt(workload, 'spec', 'updateStrategy', 'type') === 'OnDelete',
  }
}
