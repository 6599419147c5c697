import { now } from '../../base/clock.ts'
import type { ClientCertificate } from '../../http/exchange/exchange.ts'

/**
 * Whether a certificate is valid now. Checked for each request, because a connection may outlive
 * its certificate.
 */
export const isValidNow = ({ validFrom, validTo }: ClientCertificate): boolean =>
  validFrom <= now() && now() <= validTo

/**
 * Whether a certificate was valid when an API server last answered. One that has ended since was
 * good until the outage. One that is yet to begin by the clock shows that the clock runs behind
 * what the hub has recorded, as on a node that has none without power and starts in 1970.
 */
export const wasValidAt = (
  { validFrom, validTo }: ClientCertificate,
  lastContact: number | undefined,
): boolean => lastContact !== undefined && validFrom <= lastContact && lastContact <= validTo

/**
 * Whether a certificate names the kubelet of this node, by the API server's rule (kubernetes
 * pkg/auth/nodeidentifier).
 */
export const namesNode = (
  { commonName, organizations }: ClientCertificate,
  nodeName: string,
): boolean => commonName === `system:node:${nodeName}` && organizations.includes('system:nodes')
