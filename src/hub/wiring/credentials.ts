import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Broadcast } from '../../base/broadcast.ts'
import { now } from '../../base/clock.ts'
import { endText } from '../../certificates/validity.ts'
import { certificateFault, whyRefused } from '../../config/credential-faults.ts'
import { kubeletCredentials, type Credentials } from '../../config/credentials.ts'
import type { Connections } from '../../http/client/connections.ts'
import { NodeCertificate } from '../../http/client/node-certificate.ts'
import { DynamicServingCredentials } from '../../http/server/dynamic-serving-credentials.ts'
import type { ServingCredentials } from '../../http/server/listener.ts'
import type { ReadinessCheck } from '../../http/server/ops.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { HubContext } from './hub-context.ts'
import { servingNames } from './names.ts'

/**
 * The certificates of the TLS listener, kept current; `replaced` announces each change. Rejects
 * where configured files cannot be used.
 */
export const servingOf = (
  { config, log }: HubContext,
  upstreamCa: string | undefined,
  replaced: Broadcast<[ServingCredentials]>,
) =>
  DynamicServingCredentials.open({
    folder: join(config.rootDir, 'pki'),
    names: servingNames(config),
    given: config.tls.serving,
    awaitsSigned: config.tls.signer !== undefined,
    signedFor: config.tls.signedFor,
    clientCa: config.tls.clientCa,
    upstreamCa,
    onReplaced: (credentials) => replaced.announce(credentials),
    onAuthorityMade: () =>
      log.warn(
        'a new authority was made for the TLS proxy: its clients must be given pki/ca.crt under --root-dir',
      ),
    onUnusable: (err) =>
      log.error(
        { err },
        "the TLS listener's certificates have changed and cannot be used; the last good ones stay",
      ),
    onFailure: (err) =>
      log.error(
        { err },
        "the TLS listener's own certificate cannot be made or stored: the present one stays, and the next start makes another",
      ),
  })

/** Logs a client certificate outside its validity period. */
export function logCertificateFault(credentials: Credentials, log: Logger): void {
  const fault = certificateFault(credentials, now())
  if (fault !== undefined) {
    log.error(
      `${fault}: API servers will refuse it; renew it there, or set the clock; the node is answered from the cache meanwhile`,
    )
  }
}

interface CertificateParts {
  readonly cloud: Cloud
  readonly connections: Connections
  readonly obtained: NodeCertificate
}

/**
 * Whether API servers accept the hub's own credentials. The check fails readiness while API servers
 * can be reached and all of them refuse, which does not heal by itself. Expiry alone is shown, but
 * does not fail it: offline the hub works as before, and an API server that accepts the certificate
 * knows better than this node's clock. Without a certificate the hub is not ready.
 */
export const certificateCheck = ({
  cloud,
  connections,
  obtained,
}: CertificateParts): ReadinessCheck => ({
  name: 'certificate',
  check: () => {
    const { credentials } = connections
    const isOwn = credentials.certificate !== undefined || credentials.token !== undefined
    const isRefused = credentials.awaited || (isOwn && cloud.refusal !== undefined)
    const fault = isRefused ? whyRefused(credentials, now()) : certificateFault(credentials, now())
    const why = obtained.fault && `no new one is obtained: ${obtained.fault}`
    return [fault, why].filter((each) => each !== undefined).join('; ') || undefined
  },
  isRequired: () => cloud.refusal !== undefined || connections.credentials.awaited === true,
  remedy: () =>
    'compare the clock (date) and the CA of the cluster: nodehub inspect certificates has every file; where a certificate is requested, approve it (kubectl get csr)',
})

/**
 * The certificate that the hub obtains from the cluster while the configuration gives it none.
 * `onStored`: reads the files of the credentials again.
 */
export const obtainedCertificateOf = (
  { config, live, log }: HubContext,
  cloud: Cloud,
  onStored: () => void,
): NodeCertificate =>
  new NodeCertificate({
    nodeName: config.nodeName,
    rootDir: config.rootDir,
    servers: () => live().serverAddresses,
    bootstrap: () => live().bootstrap,
    kubelet: kubeletCredentials,
    isRefused: () => cloud.refusal !== undefined,
    onStored,
    onObtained: (certificate) =>
      log.info(`the hub has obtained a client certificate, valid until ${endText(certificate)}`),
    onFailure: (why) =>
      log.warn(`the hub obtains no client certificate, and goes on trying: ${why}`),
    onCaFailure: (why) =>
      log.info(
        `the cluster's CA cannot be compared with the one that is published (docs/keys-and-ca.md), and is later: ${why}`,
      ),
  })
