import { request } from 'undici'
import { every, now } from '../base/clock.ts'

export interface HeartbeatOptions {
  /** Where its API server is; a hub is one. */
  readonly server: string
  readonly nodeName: string
  readonly userAgent: string
  /** A kubelet's: a quarter of the lease's forty seconds. */
  readonly intervalMs?: number
}

/**
 * Renews a node's lease as a kubelet does: gets it, makes it where there is none, and from then on
 * updates it.
 */
export function startHeartbeat(options: HeartbeatOptions): Disposable {
  const leases = `${options.server}/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases`
  const headers = {
    'user-agent': options.userAgent,
    accept: 'application/json',
    'content-type': 'application/json',
  }
  const send = async (
    method: 'GET' | 'POST' | 'PUT',
    url: string,
    body?: object,
  ): Promise<Lease | undefined> => {
    const answer = await request(url, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (answer.statusCode < 300) return (await answer.body.json()) as Lease
    await answer.body.dump()
    return undefined
  }
  const renew = async (): Promise<void> => {
    const url = `${leases}/${options.nodeName}`
    const spec = {
      holderIdentity: options.nodeName,
      leaseDurationSeconds: 40,
      renewTime: new Date(now()).toISOString().replace('Z', '000Z'),
    }
    const lease = await send('GET', url)
    if (lease) await send('PUT', url, { ...lease, spec: { ...lease.spec, ...spec } })
    else await send('POST', leases, { ...blank, metadata: { name: options.nodeName }, spec })
  }
  const beat = (): void => {
    // A missed beat is made up for by the next one.
    renew().catch(() => undefined)
  }
  beat()
  return every(options.intervalMs ?? 10_000, beat)
}

const blank = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }

interface Lease {
  readonly spec: object
}
