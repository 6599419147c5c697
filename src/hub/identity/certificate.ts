import { now } from '../../base/clock.ts'
import type { ClientCertificate } from '../../http/exchange/exchange.ts'

/**
 * Whether a certificate is valid now: asked for each request, as a connection may outlive the
 * certificate it was made with.
 */
export const isValid = ({ validFrom, validTo }: ClientCertificate): boolean =>
  validFrom <= now() && now() <= validTo

/**
 * Whether a certificate names this node's kubelet, by the API server's rule (kubernetes
 * pkg/auth/nodeidentifier).
 */
export const isNodes = (
  { commonName, organizations }: ClientCertificate,
  nodeName: string,
): boolean => commonName === `system:node:${nodeName}` && organizations.includes('system:nodes')
