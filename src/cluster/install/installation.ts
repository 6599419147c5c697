/** The settings of an installation of the cluster's side. */
export interface Installation {
  /**
   * Of the Deployment, its Service and service account, the Lease and the webhook configurations.
   */
  readonly name: string
  readonly namespace: string
  readonly image: string
  /**
   * Other users that are the controller, by their names at the API server: where `nodehub cluster`
   * runs outside of the cluster.
   */
  readonly controllers?: readonly string[]
  /** Whether pods of host-network pools are put on the host network when they are created. */
  readonly podHostNetwork: boolean
  /** From where API servers come, in CIDR notation; none: from anywhere. */
  readonly apiServerCidrs?: readonly string[]
  /**
   * From where Prometheus comes; none: from anywhere. Network policies admit a node's kubelet to
   * its own pods in any case.
   */
  readonly opsCidrs?: readonly string[]
  /**
   * The ConfigMap whose `ca.crt` signs the API servers' client certificates; absent: reviews need
   * no client certificate.
   */
  readonly clientCa?: string
}

/**
 * The ports of webhooks, and of health and metrics, in a pod: the defaults of `nodehub cluster`.
 */
export const ports = { webhooks: 10283, ops: 10287 } as const
