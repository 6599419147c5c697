import { unprovenIdentity, type Identity } from '../../api/request/identity.ts'
import type { Exchange } from './exchange.ts'

/**
 * Whether the caller's identity is proven: by its connection, or by a token that the cluster has
 * signed or an API server has accepted. It can become proven during its first request, by the API
 * server's answer.
 */
export const isProven = ({ claim }: Pick<Exchange, 'claim'>): boolean => claim?.holds() !== false

/** The proven identity of the caller; `unproven` where there is none. */
export const provenIdentity = (exchange: Pick<Exchange, 'claim' | 'identity'>): Identity =>
  isProven(exchange) ? exchange.identity : unprovenIdentity
