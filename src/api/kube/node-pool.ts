import type { GVR } from './gvk.ts'
import type { JsonObject } from './json.ts'
import { endpointSlices, services } from './resources.ts'

// Labels, annotations and resources of OpenYurt's NodePools (openyurt
// pkg/apis/apps/well_known_labels_annotations.go, pkg/apis/apps/v1beta2).

/** On a Node: its pool. */
export const nodePoolLabel = 'apps.openyurt.io/nodepool'

/** On a Node: the pool to join, as older installations write it. */
export const desiredNodePoolLabel = 'apps.openyurt.io/desired-nodepool'

/** On a Node, `true`: the node is in a host-network pool; its pods share the host's network. */
export const hostNetworkLabel = 'nodepool.openyurt.io/hostnetwork'

/** On a Node: whether it is an edge node, with a hub. */
export const isEdgeWorkerLabel = 'openyurt.io/is-edge-worker'

/** On a Pod, exactly `true`: keeps the pod off nodes of host-network pools. */
export const excludeAnnotation = 'apps.openyurt.io/exclude-host-network-pool'

/** On a NodePool: its type in lower case. */
export const poolTypeLabel = 'nodepool.openyurt.io/type'

/** On a NodeBucket: the pool of its nodes. */
export const poolNameLabel = 'openyurt.io/pool-name'

/** On a Service: the topology by which a node's endpoints are selected. */
export const topologyKeysAnnotation = 'openyurt.io/topologyKeys'

export const nodePools: GVR = {
  group: 'apps.openyurt.io',
  version: 'v1beta2',
  resource: 'nodepools',
}

/** The nodes of a pool, at most a hundred per bucket: a new node changes only one bucket. */
export const nodeBuckets: GVR = {
  group: 'apps.openyurt.io',
  version: 'v1alpha1',
  resource: 'nodebuckets',
}

/** Resources that every pool shares (openyurt pkg/yurtmanager/webhook/nodepool/v1beta2). */
export const alwaysShared: readonly GVR[] = [services, endpointSlices]

/** A taint for each node of a pool. */
export interface PoolTaint {
  readonly key: string
  readonly value?: string
  readonly effect: string
}

export interface NodePoolSpec {
  /** `Edge` or `Cloud`. */
  readonly type?: string
  readonly hostNetwork?: boolean
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly taints?: readonly PoolTaint[]
  readonly poolScopeMetadata?: readonly GVR[]
}

export interface NodePoolStatus {
  readonly readyNodeNum?: number
  readonly unreadyNodeNum?: number
  readonly nodes?: readonly string[]
  readonly conditions?: readonly JsonObject[]
}

/** What is read of a NodePool, in its storage version apps.openyurt.io/v1beta2; cluster-scoped. */
export interface NodePool {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly finalizers?: readonly string[]
  }
  readonly spec?: NodePoolSpec
  readonly status?: NodePoolStatus
}
