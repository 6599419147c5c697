import { X509Certificate } from 'node:crypto'
import { after, now } from '../base/clock.ts'
import type { Credentials } from '../config/credentials.ts'
import { Line, type Protocol } from './line.ts'
import type { Pace } from './pace.ts'

/** The connections that show one set of credentials. They share neither a connection nor a TLS session with any other set. */
export class CredentialSet {
  readonly credentials: Credentials
  readonly #lines = new Map<string, Line>()
  readonly #pace: Pace

  constructor(credentials: Credentials, pace: Pace) {
    this.credentials = credentials
    this.#pace = pace
  }

  line(origin: string): Line {
    const known = this.#lines.get(origin)
    if (known) return known
    const line = new Line(origin, this.credentials, this.#pace)
    this.#lines.set(origin, line)
    return line
  }

  open(origin: string, protocol?: Protocol): number {
    return this.#lines.get(origin)?.open(protocol) ?? 0
  }

  /**
   * No more requests; resolves when those under way have come to their end. Watches among them are ended when the certificate they
   * were opened with has expired, after a day at the latest.
   */
  async retire(): Promise<void> {
    const left = Math.max(0, Math.min(expiryOf(this.credentials) - now(), dayMs))
    using _expiry = after(left, () => {
      for (const line of this.#lines.values()) line.endWatches(new CertificateExpired())
    })
    await Promise.allSettled([...this.#lines.values()].map((line) => line.retire()))
  }

  drop(origin: string): void {
    void this.#lines.get(origin)?.destroy()
    this.#lines.delete(origin)
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#lines.values()].map((line) => line.destroy()))
  }
}

const dayMs = 24 * 60 * 60_000

/** The certificate that a connection was opened with is no longer valid. */
class CertificateExpired extends Error {
  readonly code = 'CERTIFICATE_EXPIRED'
  constructor() {
    super('the client certificate of this connection has expired')
  }
}

const expiryOf = ({ certificate }: Credentials): number =>
  certificate ? new X509Certificate(certificate.chain).validToDate.getTime() : Infinity
