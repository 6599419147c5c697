import type { ConnectionOptions } from 'node:tls'
import type { TestHub } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import type { Clients } from './compare.ts'
import { http1Client } from './client.ts'
import { http2Client } from './http2-client.ts'

export interface ClientsOptions {
  readonly hub: TestHub
  /** The API server itself. */
  readonly url: string
  /**
   * TLS options for the API server: its CA, and the client certificate that the hub uses there too.
   */
  readonly tls: ConnectionOptions
  /** The client certificate that the hub accepts as the node's. */
  readonly node: { readonly cert: string | Buffer; readonly key: string | Buffer }
}

const kubelet = 'kubelet/v1.35.0 (linux/amd64) kubernetes/abcdef0'
const operator = 'operator/v1.0.0 (linux/amd64) kubernetes/abcdef0'

/**
 * The API server, and each of the hub's listeners and protocols: as a component whose answers are
 * recorded and as one whose answers pass through. Namespace names of one length keep content
 * lengths equal.
 */
export function clientsOf(t: Teardown, { hub, url, tls, node }: ClientsOptions): Clients {
  const secure = { url: hub.secureUrl, tls: { ca: hub.ca, ...node } }
  const clients = {
    direct: http1Client({ name: 'direct', url, agent: kubelet, namespace: 'w-0', tls }),
    through: [
      http1Client({ name: 'recorded', url: hub.url, agent: kubelet, namespace: 'w-1' }),
      http1Client({ name: 'passed', url: hub.url, agent: operator, namespace: 'w-2' }),
      http1Client({ name: 'recorded, TLS', agent: kubelet, namespace: 'w-3', ...secure }),
      http2Client({ name: 'passed, HTTP/2', agent: operator, namespace: 'w-4', ...secure }),
    ],
  }
  t.teardown(() => {
    for (const client of [clients.direct, ...clients.through]) client.close()
  })
  return clients
}

/** Patient probes: everything runs in one process beside other tests, so silence proves nothing. */
export const patientHeartbeat = {
  intervalMs: 1_000,
  timeoutMs: 20_000,
  failedRetry: 3,
  healthyThreshold: 1,
}
