import type { Incoming } from '../../http/exchange/exchange.ts'

/**
 * How browsers, which cannot set Authorization on a WebSocket, send a token (apiserver
 * pkg/authentication/request/websocket).
 */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** The credential other than a certificate that a request carries. */
export interface Shown {
  /** The whole Authorization, as it was sent or as a WebSocket's protocol stands for it. */
  readonly text: string
  /**
   * The token that an API server finds in it; absent where it finds none, and takes the caller for
   * anybody.
   */
  readonly token?: string
}

/**
 * The credential of a request, `undefined` where it carries none. Reads a token exactly where an
 * API server does (apiserver pkg/authentication/request/bearertoken, websocket): of anything else
 * its answers prove nothing.
 */
export function shownBy({ headers, upgrade }: Incoming): Shown | undefined {
  const [authorization, ...more] = headers.all('authorization')
  if (authorization !== undefined) {
    const token = more.length === 0 ? bearerToken(authorization) : undefined
    return { text: authorization, ...(token !== undefined && { token }) }
  }
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
 * By index: an expression for the blanks at the end tries again from each blank before it, which
 * takes the square of their number.
 */
function withoutOuterBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

/** RFC 6750's characters, in a length that a head can hold. */
const isToken = (text: string): boolean =>
  text.length <= 16_384 && /^[A-Za-z0-9\-._~+/]+=*$/.test(text)
