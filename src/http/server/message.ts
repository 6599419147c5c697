import type { IncomingMessage } from 'node:http'
import { HeaderList } from '../exchange/headers.ts'
import { STATUS_CODES } from '../../base/node-http.ts'

/** The status for a malformed message, with a detail where there is one. */
export interface Fault {
  readonly code: number
  readonly detail?: string
}

/**
 * Finds a fault that Node's parser accepts and Go's net/http refuses: a version other than 1.0 and
 * 1.1, a Host field that is missing, repeated or malformed, a transfer encoding that is not exactly
 * `chunked`.
 */
export function faultOf(request: IncomingMessage): Fault | undefined {
  const { httpVersion, rawHeaders } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return { code: 505, detail: 'unsupported protocol version' }
  }
  const headers = new HeaderList(rawHeaders)
  const host = headers.get('host')
  if (host === undefined && httpVersion === '1.1') {
    return { code: 400, detail: 'missing required Host header' }
  }
  if (headers.isRepeated('host')) return { code: 400 }
  if (host !== undefined && !hostCharacters.test(host)) {
    return { code: 400, detail: 'malformed Host header' }
  }
  const encoding = headers.get('transfer-encoding')
  if (encoding === undefined) return undefined
  // Node reads a transfer encoding in HTTP/1.0, Go does not: what one reads as a body would be the
  // next request to the other.
  if (httpVersion === '1.0') return { code: 400 }
  const isChunked = encoding.toLowerCase() === 'chunked' && !headers.isRepeated('transfer-encoding')
  return isChunked ? undefined : { code: 501 }
}

/** RFC 3986 section 3.2.2, as golang.org/x/net/http/httpguts reads it. */
const hostCharacters = /^[\w!$%&'()*+,\-.:;=[\]~]*$/

/**
 * The path of a request's target. A target in absolute form (RFC 9112 section 3.2.2) counts where
 * it names the same host as the Host field; any other target is returned unchanged, and will be
 * refused as a path.
 */
export function pathOf({ url = '/', headers }: IncomingMessage): string {
  if (url.startsWith('/')) return url
  const match = /^https?:\/\/([^/?#]*)(\/.*)$/i.exec(url)
  const [, authority, path] = match ?? []
  if (authority === undefined || path === undefined) return url
  return authority.toLowerCase() === headers.host?.toLowerCase() ? path : url
}

/** Reason phrases in which Go's net/http, and so an API server, differs from Node. */
const ofGo: Readonly<Record<number, string>> = {
  413: 'Request Entity Too Large',
  414: 'Request URI Too Long',
  416: 'Requested Range Not Satisfiable',
  418: "I'm a teapot",
}

/** The reason phrase that an API server sends; '' for a code without one. */
export const reasonPhrase = (code: number): string => ofGo[code] ?? STATUS_CODES[code] ?? ''
