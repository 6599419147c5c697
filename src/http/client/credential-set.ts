import { X509Certificate } from 'node:crypto'
import { after, now } from '../../base/clock.ts'
import type { Credentials } from '../../config/credentials.ts'
import { ServerConnections, type Protocol } from './server-connections.ts'
import type { ConnectionTimings } from './connection-timings.ts'

/**
 * The connections that use one set of credentials. They share neither connections nor TLS sessions
 * with other sets.
 */
export class CredentialSet {
  readonly credentials: Credentials
  readonly #servers = new Map<string, ServerConnections>()
  readonly #timings: ConnectionTimings

  constructor(credentials: Credentials, timings: ConnectionTimings) {
    this.credentials = credentials
    this.#timings = timings
  }

  server(origin: string): ServerConnections {
    const known = this.#servers.get(origin)
    if (known) return known
    const server = new ServerConnections(origin, this.credentials, this.#timings)
    this.#servers.set(origin, server)
    return server
  }

  open(origin: string, protocol?: Protocol): number {
    return this.#servers.get(origin)?.open(protocol) ?? 0
  }

  /**
   * Takes no more requests; resolves when those in flight are over. Ends watches when the
   * certificate of their connection expires, after a day at the latest.
   */
  async retire(): Promise<void> {
    const left = Math.max(0, Math.min(expiryOf(this.credentials) - now(), dayMs))
    using _expiry = after(left, () => {
      for (const server of this.#servers.values()) server.endWatches(new CertificateExpired())
    })
    await Promise.allSettled([...this.#servers.values()].map((server) => server.retire()))
  }

  drop(origin: string): void {
    void this.#servers.get(origin)?.destroy()
    this.#servers.delete(origin)
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.destroy()))
  }
}

const dayMs = 24 * 60 * 60_000

/** The certificate of a connection has expired. */
class CertificateExpired extends Error {
  readonly code = 'CERTIFICATE_EXPIRED'
  constructor() {
    super('the client certificate of this connection has expired')
  }
}

const expiryOf = ({ certificate }: Credentials): number =>
  certificate ? new X509Certificate(certificate.chain).validToDate.getTime() : Infinity
