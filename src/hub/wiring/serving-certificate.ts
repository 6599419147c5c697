import { hash } from 'node:crypto'
import { join } from 'node:path'
import { StoredPair } from '../../certificates/stored-pair.ts'
import { endText } from '../../certificates/validity.ts'
import { kubernetesNames } from '../../config/kubernetes-names.ts'
import { anyApiCall } from '../../http/client/api-call.ts'
import { RequestedServingCertificate } from '../../http/client/requested-serving-certificate.ts'
import type { HubContext } from './hub-context.ts'
import { requestedNames } from './names.ts'
import type { CloudParts } from './parts/cloud.ts'

interface Dependencies extends HubContext, Pick<CloudParts, 'connections' | 'serving'> {
  /**
   * The ClusterIPs of default/kubernetes; `null`: they cannot be read; `undefined`: not known yet.
   */
  readonly serviceAddresses: () => readonly string[] | null | undefined
}

/** The serving certificate that is requested from the cluster; `undefined`: none is. */
export function requestedServingOf({
  config,
  live,
  connections,
  serving,
  serviceAddresses,
  log,
}: Dependencies): RequestedServingCertificate | undefined {
  const { signer, organizations, signedFor } = config.tls
  if (signer === undefined) return undefined
  // A certificate of another signer is not used for this one.
  const digest = hash('sha256', JSON.stringify([signer, organizations])).slice(0, 8)
  const own = [
    ...(signedFor === undefined ? requestedNames(config) : [signedFor]),
    ...kubernetesNames,
  ]
  return new RequestedServingCertificate({
    nodeName: config.nodeName,
    signer,
    organizations,
    names: () => {
      const addresses = serviceAddresses()
      return addresses === undefined ? undefined : [...new Set([...own, ...(addresses ?? [])])]
    },
    isNeeded: signedFor === undefined,
    stored: new StoredPair(join(config.rootDir, 'pki'), `nodehub-signed-${digest}`),
    authorities: () => connections.credentials.ca,
    call: (signal) => anyApiCall(live().serverAddresses, connections.credentials, { signal }),
    onChange: (pair) => serving.useSigned(pair),
    onObtained: (certificate) =>
      log.info(`the hub has obtained a serving certificate, valid until ${endText(certificate)}`),
    onFailure: (why) =>
      log.warn(`the hub obtains no serving certificate from ${signer}, and goes on trying: ${why}`),
  })
}

/** For `/readyz?verbose`: it does not affect readiness. */
export function servingLine(requested: RequestedServingCertificate): string {
  const { certificate, fault } = requested
  const why = fault === undefined ? '' : `, no new one is obtained: ${fault}`
  return certificate === undefined
    ? `[ ]serving-certificate of the hub's own authority${why}`
    : `[+]serving-certificate of the cluster until ${endText(certificate)}${why}`
}
