import { now } from '../../base/clock.ts'
import type { ClusterServing } from '../../config/cluster-config.ts'
import type { CredentialFiles, Credentials } from '../../config/credentials.ts'
import { followCredentials, loadCredentials } from '../../http/client/credential-follower.ts'
import type { IssuedCertificate } from '../../certificates/authority.ts'
import type { ApiServer } from '../api/api-server.ts'
import type { OwnService } from './bundles.ts'
import { endOf, sharedCertificate, type Serving, type ServingState } from './certificate-secret.ts'

export interface ServingOptions {
  readonly api: ApiServer
  readonly service: OwnService
  readonly onRenewed: (state: ServingState) => void
  readonly onFailure: (cause: unknown) => void
}

/** How often files are read. */
const pollMs = 5_000

/**
 * Resolves when there is something to show, which waits for the API server where it is kept in a
 * Secret.
 */
export const servingOf = (from: ClusterServing, options: ServingOptions): Promise<Serving> =>
  from.kind === 'files' ? Promise.resolve(fromFiles(from, options)) : fromSecret(from.name, options)

function fromSecret(name: string, { service, ...options }: ServingOptions): Promise<Serving> {
  const { namespace } = service
  const names = ['svc', 'svc.cluster.local'].map((zone) => `${service.name}.${namespace}.${zone}`)
  return sharedCertificate({ ...options, namespace, name, names })
}

/**
 * The credentials in files, as they are now. Files that cannot be used, as in the middle of a
 * rotation, leave the last good ones in force.
 */
export function followFiles(where: CredentialFiles, onUnusable: (cause: unknown) => void) {
  let inForce = loadCredentials(where)
  const adopt = (credentials: Credentials): void => {
    inForce = credentials
  }
  const follower = followCredentials(where, inForce, pollMs, adopt, onUnusable)
  return {
    current: () => inForce,
    [Symbol.dispose]: () => follower[Symbol.dispose](),
  }
}

function fromFiles(
  { certificate, key, ca }: ClusterServing & { kind: 'files' },
  { onFailure }: ServingOptions,
): Serving {
  const where = { kind: 'files' as const, certificate, key, ...(ca !== undefined && { ca }) }
  const files = followFiles(where, onFailure)
  return {
    pair: () => {
      const { chain = '', key: secret } = files.current().certificate ?? {}
      return { certificate: chain, key: secret?.reveal() ?? '' }
    },
    bundle: () => files.current().ca,
    [Symbol.asyncDispose]: async () => files[Symbol.dispose](),
  }
}

/** The problem with the certificate that is shown, if there is one. */
export function wrongWith({ certificate }: IssuedCertificate): string | undefined {
  const end = endOf(certificate)
  if (end === undefined) return 'it is no certificate'
  return end.getTime() > now() ? undefined : `it ended ${end.toISOString()}`
}
