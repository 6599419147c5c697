import { keepProcessAlive, now } from '../../base/clock.ts'
import type { ClusterServing } from '../../config/cluster-config.ts'
import type { CredentialFiles, Credentials } from '../../config/credentials.ts'
import { followCredentials, loadCredentials } from '../../http/client/credential-follower.ts'
import type { IssuedCertificate } from '../../certificates/authority.ts'
import type { ApiServer } from '../api/api-server.ts'
import type { OwnService } from './bundles.ts'
import { CertificateSecret, endOf, type ServingState } from './certificate-secret.ts'

/** The serving certificate of the webhooks, and its CA. */
export interface Serving extends AsyncDisposable {
  pair(): IssuedCertificate
  /** PEM; `undefined` where nothing is to be written into configurations. */
  bundle(): string | undefined
}

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

async function fromSecret(name: string, { service, ...options }: ServingOptions): Promise<Serving> {
  const { namespace } = service
  const names = ['svc', 'svc.cluster.local'].map((zone) => `${service.name}.${namespace}.${zone}`)
  const kept = new CertificateSecret({ ...options, namespace, name, names })
  // Between two tries there may be no connection, and no timer here keeps the process alive.
  using _waiting = keepProcessAlive()
  await kept.ready
  return {
    pair: () => kept.state?.leaf ?? { certificate: '', key: '' },
    bundle: () => kept.state?.bundle.join(''),
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  }
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
