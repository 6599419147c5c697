import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../../api/kube/json-at.ts'
import { writerOf } from './writer.ts'
import { affinityKeptOff, workloadPlacement, type WorkloadPlacement } from './placement.ts'

export type WorkloadKind = 'DaemonSet' | 'Deployment'

/** The operator or tool that manages a workload. */
export interface Owner {
  readonly name: string
  /** Whether it would revert a change at once, rather than at its next upgrade. */
  readonly reverts: boolean
  /** The setting of the owner that has the same effect. */
  readonly setting: string
}

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
  readonly owner: Owner | undefined
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
    owner: ownerOf(workload),
    rolls: typeof count === 'number' ? count : 0,
    onDelete: textAt(workload, 'spec', 'updateStrategy', 'type') === 'OnDelete',
  }
}

const affinity =
  'nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0] = ' +
  '{key: nodepool.openyurt.io/hostnetwork, operator: NotIn, values: ["true"]}'

function ownerOf(workload: JsonObject): Owner | undefined {
  const name = textAt(workload, 'metadata', 'name')
  const controller = listAt(workload, 'metadata', 'ownerReferences').find(
    (each) => valueAt(each, 'controller') === true,
  )
  if (textAt(controller, 'apiVersion').startsWith('operator.tigera.io/')) {
    const setting = `in the Installation: the affinity of ${name} with ${affinity}`
    return { name: 'tigera-operator', reverts: true, setting }
  }
  if (controller !== undefined) {
    const who = `${textAt(controller, 'kind')} ${textAt(controller, 'name')}`
    return { name: who, reverts: true, setting: `in ${who}: an affinity with ${affinity}` }
  }
  const writer = writerOf(workload)
  if (writer === undefined) return undefined
  if (writer.kind === 'helm') {
    const setting = `in its values: the affinity of ${name} with ${affinity}`
    return { name: writer.name, reverts: false, setting }
  }
  const where =
    writer.kind === 'source'
      ? `at the source that ${writer.name} applies`
      : `where ${writer.name} has it from`
  return { name: writer.name, reverts: true, setting: `${where}: ${affinity}` }
}
