import type { GVR } from './gvk.ts'
import type { JsonObject } from './json.ts'
import { endpointSlices, services } from './resources.ts'

// The words of OpenYurt's pools of nodes (openyurt pkg/apis/apps/well_known_labels_annotations.go,
// pkg/apis/apps/v1beta2).

/** On a Node: the pool it is in. */
export const nodePoolLabel = 'apps.openyurt.io/nodepool'

/** On a Node: the pool it wishes to be in, as older installations write it. */
export const desiredNodePoolLabel = 'apps.openyurt.io/desired-nodepool'

/**
 * On a Node, `true`: its pods share the host's network, and nothing of the pod network runs there.
 */
export const hostNetworkLabel = 'nodepool.openyurt.io/hostnetwork'

/** On a Node: whether it is one at the edge, with a hub. */
export const isEdgeWorkerLabel = 'openyurt.io/is-edge-worker'

/** On a Pod, `true` and nothing else: it is kept off the nodes of host-network pools. */
export const excludeAnnotation = 'apps.openyurt.io/exclude-host-network-pool'

/** On a NodePool: its type in lower case. */
export const poolTypeLabel = 'nodepool.openyurt.io/type'

/** On a NodeBucket: the pool of its nodes. */
export const poolNameLabel = 'openyurt.io/pool-name'

/** On a Service: by what the endpoints that a node is shown are chosen. */
export const topologyKeysAnnotation = 'openyurt.io/topologyKeys'

export const nodePools: GVR = {
  group: 'apps.openyurt.io',
  version: 'v1beta2',
  resource: 'nodepools',
}

/** The nodes of a pool, at most a hundred in each, so that one more is no change of all. */
export const nodeBuckets: GVR = {
  group: 'apps.openyurt.io',
  version: 'v1alpha1',
  resource: 'nodebuckets',
}

/** A resource whose answers the nodes of a pool share. */
export interface SharedResource {
  readonly group: string
  readonly version: string
  readonly resource: string
}

/**
 * What the nodes of each pool share, whatever else is named (openyurt
 * pkg/yurtmanager/webhook/nodepool/v1beta2).
 */
export const alwaysShared: readonly SharedResource[] = [services, endpointSlices]

/** What is put on each node of a pool. */
export interface PoolTaint {
  readonly key: string
  readonly value?: string
  readonly effect: string
  readonly timeAdded?: string
}

export interface NodePoolSpec {
  /** `Edge` or `Cloud`. */
  readonly type?: string
  readonly hostNetwork?: boolean
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly taints?: readonly PoolTaint[]
  readonly interConnectivity?: boolean
  readonly enableLeaderElection?: boolean
  /** `random` or `mark`. */
  readonly leaderElectionStrategy?: string
  readonly leaderNodeLabelSelector?: Readonly<Record<string, string>>
  readonly leaderReplicas?: number
  readonly poolScopeMetadata?: readonly SharedResource[]
}

export interface NodePoolStatus {
  readonly readyNodeNum?: number
  readonly unreadyNodeNum?: number
  readonly nodes?: readonly string[]
  readonly leaderEndpoints?: readonly { readonly nodeName: string; readonly address: string }[]
  readonly leaderNum?: number
  readonly leaderLastElectedTime?: string
  readonly conditions?: readonly JsonObject[]
}

/** A NodePool in the version it is stored in, apps.openyurt.io/v1beta2; cluster-scoped. */
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
