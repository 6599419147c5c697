import { X509Certificate } from 'node:crypto'
import { now } from '../../base/clock.ts'
import type { ClusterServing } from '../../config/cluster-config.ts'
import type { CredentialFiles, Credentials } from '../../config/credentials.ts'
import { followCredentials, loadCredentials } from '../../http/client/credential-follower.ts'
import type { ServingPair } from '../serve.ts'
import type { ApiServer } from '../api/api-server.ts'
import type { OwnService } from './bundles.ts'
import { CertificateSecret } from './certificate-secret.ts'
import type { ServingState } from './rotation.ts'

/** The serving certificate of the webhooks, and its CA. */
export interface Serving extends AsyncDisposable {
  pair(): ServingPair
  /** PEM; `undefined` where nothing is to be written into configurations. */
  bundle(): string | undefined
  /** Calls `act` whenever either changes; replaces the previous callback. */
  onChange(act: () => void): void
  /** The problem with the certificate, if there is one. */
  wrong(): string | undefined
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
  let changed = (): void => undefined
  const { namespace } = service
  const kept = new CertificateSecret({
    ...options,
    namespace,
    name,
    names: [`${service.name}.${namespace}.svc`, `${service.name}.${namespace}.svc.cluster.local`],
    onChange: () => changed(),
  })
  await kept.ready
  return {
    pair() {
      const { certificate = '', key = '' } = kept.state?.leaf ?? {}
      return { cert: certificate, key }
    },
    bundle: () => kept.bundle,
    onChange: (act) => {
      changed = act
    },
    wrong: () => ended(kept.state?.leaf.certificate ?? ''),
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  }
}

/**
 * The credentials in files, as they are now. Files that cannot be used, as in the middle of a
 * rotation, leave the last good ones in force.
 */
export function followFiles(
  where: CredentialFiles,
  onUnusable: (cause: unknown) => void,
  onChange: () => void = () => undefined,
) {
  let inForce = loadCredentials(where)
  const adopt = (credentials: Credentials): void => {
    inForce = credentials
    onChange()
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
  let changed = (): void => undefined
  const files = followFiles(where, onFailure, () => changed())
  const pair = (): ServingPair => {
    const { chain = '', key: secret } = files.current().certificate ?? {}
    return { cert: chain, key: secret?.reveal() ?? '' }
  }
  return {
    pair,
    bundle: () => files.current().ca,
    onChange: (act) => {
      changed = act
    },
    wrong: () => ended(pair().cert),
    [Symbol.asyncDispose]: () => {
      files[Symbol.dispose]()
      return Promise.resolve()
    },
  }
}

function ended(certificate: string): string | undefined {
  const end = endOf(certificate)
  if (end === undefined) return 'it is no certificate'
  return end.getTime() > now() ? undefined : `it ended ${end.toISOString()}`
}

/** When a certificate ends; `undefined` where it is none. */
export function endOf(certificate: string): Date | undefined {
  try {
    return new X509Certificate(certificate).validToDate
  } catch {
    return undefined
  }
}
