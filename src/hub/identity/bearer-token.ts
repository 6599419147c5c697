import type { Incoming } from '../../http/exchange/exchange.ts'

/**
 * Browsers cannot set Authorization on a WebSocket: they send the token as a subprotocol with this
 * prefix (apiserver pkg/authentication/request/websocket).
 */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** The Authorization credential of a request. */
export interface PresentedCredential {
  /** The whole Authorization value, as sent or as derived from the WebSocket subprotocol. */
  readonly text: string
  /**
   * The token that an API server reads from it. Absent where an API server reads none and treats
   * the caller as anonymous.
   */
  readonly token?: string
}

/**
 * The credential of a request; `undefined` where it carries none. Reads a token only where an API
 * server does (apiserver pkg/authentication/request/bearertoken, websocket): an answer to any other
 * request does not show that a token is valid.
 */
export function presentedCredential({
  headers,
  upgrade,
}: Incoming): PresentedCredential | undefined {
  const authorization = headers.get('authorization')
  if (authorization !== undefined) {
    const token = headers.isRepeated('authorization') ? undefined : bearerToken(authorization)
    return { text: authorization, ...(token !== undefined && { token }) }
  }
  if (!headers.has('sec-websocket-protocol')) return undefined
  const offered = headers.all('sec-websocket-protocol').flatMap((value) => value.split(','))
  const protocol = offered.map((name) => name.trim()).find((name) => name.startsWith(tokenProtocol))
  if (protocol === undefined) return undefined
  const token = Buffer.from(protocol.slice(tokenProtocol.length), 'base64url').toString()
  return { text: `Bearer ${token}`, ...(upgrade && isToken(token) && { token }) }
}

function bearerToken(authorization: string): string | undefined {
  const [scheme = '', token = ''] = withoutOuterBlanks(authorization).split(' ', 3)
  return scheme.toLowerCase() === 'bearer' && isToken(token) ? token : undefined
}

/**
 * By index: a regular expression for trailing blanks backtracks from each blank, which takes
 * quadratic time.
 */
function withoutOuterBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

/** The characters of RFC 6750, at most as long as a request head can be. */
const isToken = (text: string): boolean =>
  text.length <= 16_384 && /^[A-Za-z0-9\-._~+/]+=*$/.test(text)
