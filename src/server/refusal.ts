import type { Duplex } from 'node:stream'
import { after } from '../base/clock.ts'
import { badRequest, type Status } from '../kube/status.ts'
import { limits } from './limits.ts'

const tooLarge: Status = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'the head of the request is too large',
  code: 431,
}

/** Answers what could not be parsed as a request with a Status in JSON, if the connection still takes it, and closes. */
export function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? tooLarge
      : badRequest(
          error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
            ? 'the head of the request did not arrive in time'
            : 'the request could not be parsed',
        )
  const body = `${JSON.stringify(status)}\n`
  endWith(
    socket,
    `HTTP/1.1 ${status.code} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** Writes the last bytes of a connection, and closes it though its client may not. */
export function endWith(socket: Duplex, bytes: string | Uint8Array): void {
  socket.end(bytes, () => {
    const patience = after(limits.lingerMs, () => socket.destroy())
    socket.once('close', () => patience[Symbol.dispose]())
  })
}
