import { now } from '../../base/clock.ts'
import type { ClientCertificate } from '../../http/exchange/exchange.ts'

/**
 * Whether a certificate is valid now. Checked for each request, because a connection may outlive
 * its certificate.
 */
export const isValidNow = ({ validFrom, validTo }: ClientCertificate): boolean =>
  validFrom <= now() && now() <= validTo

/**
 * Whether a certificate names the kubelet of this node, by the API server's rule (kubernetes
 * pkg/auth/nodeidentifier).
 */
export const namesNode = (
  { commonName, organizations }: ClientCertificate,
  nodeName: string,
): boolean => commonName === `system:node:${nodeName}` && organizations.includes('system:nodes')
