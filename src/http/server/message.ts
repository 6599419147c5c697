import type { IncomingMessage, ServerResponse } from 'node:http'
import { HeaderList } from '../exchange/headers.ts'
import { STATUS_CODES } from '../../base/node-http.ts'
import type { Duplex } from 'node:stream'
import { afterUnlessClosed } from '../../base/clock.ts'
import { limits } from './limits.ts'

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

/** The answers to failures of Node's parser; any other gets a plain 400. */
const faults: Readonly<Record<string, Fault>> = {
  HPE_HEADER_OVERFLOW: { code: 431 },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 408 },
  HPE_INVALID_TRANSFER_ENCODING: { code: 501 },
}

/**
 * Answers a message that could not be parsed, if the connection is still writable, and closes it.
 */
export function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
  else endWith(socket, messageOf(faults[error.code ?? ''] ?? { code: 400 }))
}

/**
 * A whole answer in the format of Go's net/http, which refuses malformed messages before an API
 * server could make a Status (net/http server.go).
 */
export function messageOf(fault: Fault): string {
  const { line, body } = wordsOf(fault)
  return `HTTP/1.1 ${line}\r\nContent-Type: ${plainText}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
}

/** The same through Node's response, which waits for the answers before it on the connection. */
export function respondWith(fault: Fault, response: ServerResponse): void {
  const { line, body } = wordsOf(fault)
  response.sendDate = false
  response.writeHead(fault.code, line.slice(4), {
    'Content-Type': plainText,
    'Content-Length': body.length,
    Connection: 'close',
  })
  response.end(body)
}

const plainText = 'text/plain; charset=utf-8'

/** The status line, and a body that usually repeats it. */
function wordsOf({ code, detail }: Fault): { line: string; body: string } {
  const line = `${code} ${reasonPhrase(code)}${detail === undefined ? '' : `: ${detail}`}`
  return { line, body: code === 501 ? 'Unsupported transfer encoding' : line }
}

/**
 * Writes the last bytes of a connection, and closes it after a short time even if its client does
 * not.
 */
export function endWith(socket: Duplex, bytes: string | Uint8Array): void {
  socket.end(bytes, () => afterUnlessClosed(socket, limits.lingerMs, () => socket.destroy()))
}
