import { certificatesIn } from '../../config/bootstrap.ts'
import { apiCall } from './api-call.ts'
import { CertificateRenewal } from './certificate-renewal.ts'
import { publishedCa } from './cluster-info.ts'

export interface CaRefreshOptions {
  readonly servers: () => readonly URL[]
  /** The present CA, PEM; `undefined`: there is none yet, or the configuration gives it. */
  readonly present: () => string | undefined
  /** Stores the next one. */
  readonly store: (ca: string) => Promise<void>
  /** Called with each reason why the CA cannot be compared, once while it stays the same. */
  readonly onFailure: (why: string) => void
  /** The time between two comparisons; each is jittered. */
  readonly everyMs: number
}

/** The hub cannot trust the published CA. */
class UnusableCa extends Error {
  readonly code = 'UNUSABLE_CA'
}

/**
 * Follows the cluster's CA while it is rotated: compares it with the CA bundle in the ConfigMap
 * cluster-info, which any client may read, and reads that only from an API server that the present
 * CA verifies. The hub adopts a bundle only if it verifies every API server that the present one
 * verifies: a wrong one, and a new CA alone before all servers have its certificates, would cut the
 * hub off.
 */
export const caRefresh = (options: CaRefreshOptions): CertificateRenewal =>
  new CertificateRenewal({
    dueMs: () => 0,
    obtain: ({ signal }) => refreshed(options, signal),
    onFailure: options.onFailure,
    pace: {
      firstRetryMs: options.everyMs,
      longestRetryMs: options.everyMs,
      longestDeniedMs: 0,
      approvalMs: 0,
      lookMs: 0,
    },
  })

async function refreshed(
  { servers, present, store }: CaRefreshOptions,
  signal: AbortSignal,
): Promise<void> {
  const ca = present()
  if (ca === undefined) return
  const read = (server: URL, by: string): Promise<string> =>
    publishedCa(apiCall(server, { ca: by, files: [] }, { signal }))
  const verified: URL[] = []
  const published = new Set<string>()
  let failure: unknown = new UnusableCa('there is no API server')
  for (const server of servers()) {
    try {
      published.add(await read(server, ca))
      verified.push(server)
    } catch (cause) {
      failure = cause
    }
  }
  const [next, ...others] = published
  if (next === undefined) throw failure
  if (others.length > 0) throw new UnusableCa('API servers publish different CAs')
  if (isSame(next, ca)) return
  for (const server of verified) await read(server, next)
  if (present() === ca && !signal.aborted) await store(next)
}

/** Whether two bundles have the same certificates, in whatever order. */
const isSame = (one: string, other: string): boolean =>
  certificatesIn(one).toSorted().join() === certificatesIn(other).toSorted().join()
