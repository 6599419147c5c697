import { readFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { every, now } from '../../base/clock.ts'
import { stampOf } from '../../base/file-stamp.ts'
import type { ClusterServing } from '../../config/cluster-config.ts'
import { readCredentials } from '../../config/credentials.ts'
import type { ServingPair } from '../serve.ts'
import type { ApiServer } from '../api/api-server.ts'
import type { OwnService } from './bundles.ts'
import { CertificateSecret } from './certificate-secret.ts'
import type { ServingState } from './rotation.ts'

/** What the webhooks show, and who vouches for it. */
export interface Serving extends AsyncDisposable {
  pair(): ServingPair
  /** PEM; `undefined` where nothing is to be written into configurations. */
  bundle(): string | undefined
  /** Calls `act` whenever either changes, in the place of what was called before. */
  onChange(act: () => void): void
  /** What is wrong with it, if anything is. */
  wrong(): string | undefined
}

export interface ServingOptions {
  readonly api: ApiServer
  readonly service: OwnService
  readonly published: (bundle: string) => boolean
  readonly onRenewed: (state: ServingState) => void
  readonly onFailure: (cause: unknown) => void
}

/** How often files are looked at. */
const lookMs = 5_000

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
 * Files that cannot be used, as in the middle of a rotation, leave in force what was read before.
 */
function fromFiles(
  { certificate, key, ca }: ClusterServing & { kind: 'files' },
  { onFailure }: ServingOptions,
): Serving {
  const files = [certificate, key, ...(ca === undefined ? [] : [ca])]
  const read = () => {
    const where = { kind: 'files' as const, certificate, key, ...(ca !== undefined && { ca }) }
    const found = readCredentials(where, (path) => readFileSync(path, 'utf8'))
    const { chain = '', key: secret } = found.certificate ?? {}
    return { pair: { cert: chain, key: secret?.reveal() ?? '' }, bundle: found.ca }
  }
  let current = read()
  let stamp = stampOf(files)
  let changed = (): void => undefined
  const timer = every(lookMs, () => {
    const latest = stampOf(files)
    if (latest === stamp) return
    stamp = latest
    try {
      current = read()
      changed()
    } catch (cause) {
      onFailure(cause)
    }
  })
  return {
    pair: () => current.pair,
    bundle: () => current.bundle,
    onChange: (act) => {
      changed = act
    },
    wrong: () => ended(current.pair.cert),
    [Symbol.asyncDispose]: () => {
      timer[Symbol.dispose]()
      return Promise.resolve()
    },
  }
}

function ended(certificate: string): string | undefined {
  try {
    const { validToDate } = new X509Certificate(certificate)
    return validToDate.getTime() > now() ? undefined : `it ended ${validToDate.toISOString()}`
  } catch {
    return 'it is no certificate'
  }
}
