import { now } from '../base/clock.ts'
import type { ClientCertificate } from '../exchange/exchange.ts'

/** Asked with each request, as a connection may outlive the certificate it was made with. */
export const isValid = ({ validFrom, validTo }: ClientCertificate): boolean =>
  validFrom <= now() && now() <= validTo

/** Whom the API server takes for a node's kubelet (kubernetes pkg/auth/nodeidentifier). */
export const isNodes = (
  { commonName, organizations }: ClientCertificate,
  nodeName: string,
): boolean => commonName === `system:node:${nodeName}` && organizations.includes('system:nodes')
