import { join } from 'node:path'
import { AcceptedCertificates } from '../../identity/accepted-certificates.ts'
import { ClusterKeys } from '../../identity/cluster-keys.ts'
import { SocketOwners } from '../../identity/socket-owner.ts'
import { TokenVerdicts } from '../../identity/token-verdicts.ts'
import type { HubContext } from '../hub-context.ts'
import { nodeKeys } from '../node-key.ts'

/** By what the hub knows its callers, online and offline. */
export type IdentityParts = Awaited<ReturnType<typeof openIdentity>>

/** Disposing waits until what was learned is written. */
export async function openIdentity({ config, log }: HubContext) {
  await using parts = new AsyncDisposableStack()
  const file = (name: string): string => join(config.rootDir, name)
  const keys = await nodeKeys(config)
  const proofs = parts.use(
    new TokenVerdicts(file('proofs.json'), (err) =>
      log.error(
        { err },
        'cannot write proofs.json: after a restart offline, accepted tokens are unknown',
      ),
    ),
  )
  const clusterKeys = parts.use(new ClusterKeys(file('service-account-keys.json')))
  const accepted = parts.use(
    new AcceptedCertificates(file('accepted-certificates.json'), (err) =>
      log.error(
        { err },
        "cannot write accepted-certificates.json: offline, the kubelet's certificate may not count after its end",
      ),
    ),
  )
  const open = parts.move()
  return {
    /** Keys of this node alone. */
    keys,
    /** Those by which the cluster signs tokens. */
    clusterKeys,
    /** Tokens that API servers have accepted, or refused. */
    proofs,
    /** Client certificates that were accepted before their end. */
    accepted,
    owners: new SocketOwners(),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
