import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { afterUnlessClosed } from '../../base/clock.ts'
import { limits } from './limits.ts'
import { reasonPhrase, type Fault } from './message.ts'

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
