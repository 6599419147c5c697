import type { Exchange } from '../../../http/exchange/exchange.ts'
import type { RequestCredentials } from '../../../http/exchange/own-request.ts'
import { isProven } from '../../../http/exchange/proven.ts'

/**
 * The caller's credentials for requests that the hub makes on its behalf; `undefined`: the caller
 * is not proven.
 */
export function requestCredentialsOf(exchange: Exchange): RequestCredentials | undefined {
  if (!isProven(exchange)) return undefined
  const { identity, credential, headers, claim } = exchange
  if (credential === 'node') return { identity, credential }
  const authorization = headers.get('authorization')
  if (authorization === undefined) return undefined
  return { identity, credential, authorization, ...(claim && { claim }) }
}
