import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { after } from '../base/clock.ts'
import { limits } from './limits.ts'
import type { Fault } from './message.ts'
import { reasonPhrase } from './phrase.ts'

/** What of a failure of Node's parser is told; anything else is a bad request without a word. */
const faults: Readonly<Record<string, Fault>> = {
  HPE_HEADER_OVERFLOW: { code: 431 },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 408 },
  HPE_INVALID_TRANSFER_ENCODING: { code: 501 },
}

/** Answers what could not be parsed as a request, if the connection still takes it, and closes. */
export function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
  else endWith(socket, messageOf(faults[error.code ?? ''] ?? { code: 400 }))
}

/** A whole answer in the words of Go's net/http, which speaks before there is an API server to make a Status (net/http server.go). */
export function messageOf(fault: Fault): string {
  const { line, body } = wordsOf(fault)
  return `HTTP/1.1 ${line}\r\nContent-Type: ${plainText}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
}

/** The same through a response that has its turn among others. */
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

/** Code and phrase, and as a rule the same once more for people. */
function wordsOf({ code, detail }: Fault): { line: string; body: string } {
  const line = `${code} ${reasonPhrase(code)}${detail === undefined ? '' : `: ${detail}`}`
  return { line, body: code === 501 ? 'Unsupported transfer encoding' : line }
}

/** Writes the last bytes of a connection, and closes it though its client may not. */
export function endWith(socket: Duplex, bytes: string | Uint8Array): void {
  socket.end(bytes, () => {
    const patience = after(limits.lingerMs, () => socket.destroy())
    socket.once('close', () => patience[Symbol.dispose]())
  })
}
