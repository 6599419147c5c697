import type { ConnectionOptions } from 'node:tls'
import type { TestHub } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import type { Doors } from './comparing.ts'
import { http1Door } from './door.ts'
import { http2Door } from './http2-door.ts'

export interface DoorsOptions {
  readonly hub: TestHub
  /** The API server itself. */
  readonly url: string
  /** Whom to trust there, and as whom to ask: what the hub shows there too. */
  readonly tls: ConnectionOptions
  /** What the hub takes for the node. */
  readonly node: { readonly cert: string | Buffer; readonly key: string | Buffer }
}

const kubelet = 'kubelet/v1.35.0 (linux/amd64) kubernetes/abcdef0'
const operator = 'operator/v1.0.0 (linux/amd64) kubernetes/abcdef0'

/**
 * The API server, and each of the hub's listeners and protocols; as a program whose answers are
 * recorded and as one whose answers pass. Namespaces of one length keep lengths alike.
 */
export function doorsOf(t: Teardown, { hub, url, tls, node }: DoorsOptions): Doors {
  const secure = { url: hub.secureUrl, tls: { ca: hub.ca, ...node } }
  const doors = {
    direct: http1Door({ name: 'direct', url, agent: kubelet, namespace: 'w-0', tls }),
    through: [
      http1Door({ name: 'recorded', url: hub.url, agent: kubelet, namespace: 'w-1' }),
      http1Door({ name: 'passed', url: hub.url, agent: operator, namespace: 'w-2' }),
      http1Door({ name: 'recorded, TLS', agent: kubelet, namespace: 'w-3', ...secure }),
      http2Door({ name: 'passed, HTTP/2', agent: operator, namespace: 'w-4', ...secure }),
    ],
  }
  t.teardown(() => {
    for (const door of [doors.direct, ...doors.through]) door.close()
  })
  return doors
}

/**
 * Probes that are patient: where everything runs in one process, and other tests beside it, silence
 * proves nothing.
 */
export const patientHeartbeat = {
  intervalMs: 1_000,
  timeoutMs: 20_000,
  failedRetry: 3,
  healthyThreshold: 1,
}
