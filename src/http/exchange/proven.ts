import { unprovenIdentity, type Identity } from '../../api/request/identity.ts'
import type { Exchange } from './exchange.ts'

/**
 * Whether the caller has proved who it is: by its connection, or by a token that the cluster has
 * signed or an API server has accepted. A caller can become proven while its first request is under
 * way: an API server's answer proves the token.
 */
export const isProven = ({ claim }: Pick<Exchange, 'claim'>): boolean => claim?.holds() !== false

/** Who the caller has proved to be; `nobody` where it has not. */
export const provenIdentity = (exchange: Pick<Exchange, 'claim' | 'identity'>): Identity =>
  isProven(exchange) ? exchange.identity : unprovenIdentity
