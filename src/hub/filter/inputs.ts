/** The node, as far as filters may depend on it. */
export interface NodeFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** The node's pool, as far as filters may depend on it. */
export interface PoolFacts {
  readonly name: string
  /** `Edge` or `Cloud`; empty where only the pool's name is known. */
  readonly type: string
  /** By the node's label or else the pool; `undefined` where neither has been read. */
  readonly hostNetwork: boolean | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** An address of the hub, and its port with TLS. */
export interface HubAddress {
  readonly host: string
  readonly port: number
  /** Whether its certificate names every ClusterIP of default/kubernetes, too. */
  readonly forService: boolean
}

/**
 * The data that filters may depend on besides the object: plain values. `undefined`: unknown since
 * the start of the hub. Once known, an input keeps its last value.
 */
export interface Inputs {
  readonly nodeName: string
  readonly node: NodeFacts | undefined
  /** `null`: the node is in no pool. */
  readonly pool: PoolFacts | null | undefined
  /**
   * The names of the nodes of this node's pool, sorted, always with this node; for a node in no
   * pool, this node alone. `null`: not available, because there is no such pool, its status is not
   * filled in yet, the API server does not let this node read it, or the operator has turned pools
   * off.
   */
  readonly poolNodes: readonly string[] | null | undefined
  /** The values of the annotation `openyurt.io/topologyKeys` of services, by `namespace/name`. */
  readonly topologies: Readonly<Record<string, string>> | undefined
  /** The ClusterIPs of default/kubernetes. */
  readonly serviceAddresses: readonly string[] | undefined
  /**
   * Where pods reach the hub. `null`: the hub knows no such address, or pods would not trust its
   * certificate.
   */
  readonly hubAddress: HubAddress | null
  /** The mode of the filter for host-network pools. */
  readonly propagation: 'off' | 'on'
  /**
   * Inputs that are unknown, and that the hub cannot read: filters do without them, and requests do
   * not wait.
   */
  readonly untold?: readonly InputName[]
}

/** The inputs of a node before anything was read. */
export const unknownInputs: Inputs = {
  nodeName: '',
  node: undefined,
  pool: undefined,
  poolNodes: undefined,
  topologies: undefined,
  serviceAddresses: undefined,
  hubAddress: null,
  propagation: 'off',
}

export type InputName = Exclude<keyof Inputs, 'untold'>
