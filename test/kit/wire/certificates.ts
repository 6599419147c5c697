import { Secret } from '../../../src/base/secret.ts'
import {
  CertificateAuthority,
  type CertificateRequest,
} from '../../../src/certificates/authority.ts'
import type { Credentials } from '../../../src/config/credentials.ts'

export interface Pair {
  readonly cert: string
  readonly key: string
}

type Names = Pick<CertificateRequest, 'ipAddresses' | 'dnsNames'>

/** One authority and what it issues, as PEM. */
export interface Authority {
  readonly ca: string
  /** For loopback, unless other names are given. */
  server(names?: Names): Promise<Pair>
  /** With `lifetimeMs` 0, one that ends as it is made. */
  client(name: string, lifetimeMs?: number): Promise<Pair>
  /** What a client shows with `pair` to servers of this authority. */
  credentials(pair: Pair): Credentials
}

/** An authority of its own, whose word nobody takes who is not told to. */
export async function authority(): Promise<Authority> {
  const own = await CertificateAuthority.create('ca')
  const issue = async (request: CertificateRequest): Promise<Pair> => {
    const { certificate: cert, key } = await own.issue(request)
    return { cert, key }
  }
  return {
    ca: own.certificate,
    server: (names = { ipAddresses: ['127.0.0.1'] }) =>
      issue({ commonName: 'server', usage: 'server', ...names }),
    client: (commonName, lifetimeMs) =>
      issue({ commonName, usage: 'client', ...(lifetimeMs !== undefined && { lifetimeMs }) }),
    credentials: ({ cert, key }) => ({
      ca: own.certificate,
      certificate: { chain: cert, key: new Secret(key) },
      files: [],
    }),
  }
}
