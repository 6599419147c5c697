import type { IncomingMessage } from 'node:http'
import { HeaderList } from '../exchange/headers.ts'

/** An answer to what is no request: a code, and a detail where there is one to tell. */
export interface Fault {
  readonly code: number
  readonly detail?: string
}

/**
 * What is wrong with a message that Node's parser has let pass though Go's net/http refuses it: a version that is neither 1.0 nor 1.1, no
 * host, two of them or one that cannot be, a transfer encoding that is not exactly `chunked`.
 */
export function faultOf(request: IncomingMessage): Fault | undefined {
  const { httpVersion, rawHeaders } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return { code: 505, detail: 'unsupported protocol version' }
  }
  const headers = new HeaderList(rawHeaders)
  const [host, ...more] = headers.all('host')
  if (host === undefined && httpVersion === '1.1') {
    return { code: 400, detail: 'missing required Host header' }
  }
  if (more.length > 0) return { code: 400 }
  if (host !== undefined && !hostCharacters.test(host)) {
    return { code: 400, detail: 'malformed Host header' }
  }
  const encodings = headers.all('transfer-encoding')
  const [encoding = 'chunked'] = encodings
  // Go reads no encoding into 1.0, and Node does: what would be a body here would be the next request there.
  if (httpVersion === '1.0' && encodings.length > 0) return { code: 400 }
  if (encodings.length > 1 || encoding.toLowerCase() !== 'chunked') return { code: 501 }
  return undefined
}

/** RFC 3986 section 3.2.2, as golang.org/x/net/http/httpguts reads it. */
const hostCharacters = /^[\w!$%&'()*+,\-.:;=[\]~]*$/

/**
 * The path that a target asks for. A target in absolute form (RFC 9112 section 3.2.2) asks for its path where it names the very host that
 * the Host field names; any other is left as it is, and is no path.
 */
export function pathOf({ url = '/', headers }: IncomingMessage): string {
  const match = /^https?:\/\/([^/?#]*)(\/.*)$/i.exec(url)
  const [, authority, path] = match ?? []
  if (authority === undefined || path === undefined) return url
  return authority.toLowerCase() === headers.host?.toLowerCase() ? path : url
}
