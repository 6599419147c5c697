/** What differs between installations of the cluster's side. */
export interface Installation {
  /** Of the Deployment, its Service and service account, the Lease and the webhook configurations. */
  readonly name: string
  readonly namespace: string
  readonly image: string
  /** Who else is the controller, by the names the API server knows them by: where `nodehub cluster` runs outside of the cluster. */
  readonly controllers?: readonly string[]
  /** Whether webhooks change and refuse nodes and pods, or policies of the API server. */
  readonly admission: 'webhooks' | 'policies'
  /** Whether pods of host-network pools are put on the host network when they are created. */
  readonly podHostNetwork: boolean
}

/** Where the webhooks listen in a pod, and where health and metrics are told; the defaults of `nodehub cluster`. */
export const ports = { webhooks: 10283, ops: 10287 } as const
