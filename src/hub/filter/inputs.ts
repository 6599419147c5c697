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
  /**
   * By the node's own label or, where that says nothing, by the pool; `undefined` where neither has
   * been read.
   */
  readonly hostNetwork: boolean | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** An address of the hub, and its port with TLS. */
export interface HubAddress {
  readonly host: string
  readonly port: number
}

/**
 * What filters may know besides the object they look at: plain data, kept on the disk, so that the
 * hub can tell after a restart what its clients were shown. `undefined` is what has never been
 * known on this node; what could be known once keeps its last value.
 */
export interface Inputs {
  readonly nodeName: string
  readonly node: NodeFacts | undefined
  /** `null`: the node is in no pool. */
  readonly pool: PoolFacts | null | undefined
  /**
   * The names of the nodes of this node's pool, sorted, this node always among them; of a node in
   * no pool, this node alone. `null`: not to be known, because there is no such pool, its status is
   * not filled in yet, the API server does not let this node read it, or the operator leaves pools
   * out.
   */
  readonly poolNodes: readonly string[] | null | undefined
  /**
   * What the services that have the annotation `openyurt.io/topologyKeys` say in it, by
   * `namespace/name`.
   */
  readonly topologies: Readonly<Record<string, string>> | undefined
  /**
   * Where pods reach the hub; `null`: nowhere, as far as is known, or with a certificate that they
   * would not trust.
   */
  readonly hubAddress: HubAddress | null
  /** Whether the legacy filter for host-network pools acts. */
  readonly propagation: 'off' | 'on' | 'observe'
  /**
   * What of these has never been known, and nobody tells: filters do without, and nobody waits for
   * it.
   */
  readonly untold?: readonly InputName[]
}

/** What is known of a node of which nothing has been told yet. */
export const nothingKnown: Inputs = {
  nodeName: '',
  node: undefined,
  pool: undefined,
  poolNodes: undefined,
  topologies: undefined,
  hubAddress: null,
  propagation: 'off',
}

export type InputName = Exclude<keyof Inputs, 'untold'>
