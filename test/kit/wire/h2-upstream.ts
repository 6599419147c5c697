import { once } from 'node:events'
import {
  createSecureServer,
  type IncomingHttpHeaders,
  type Http2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Pair } from './certificates.ts'
import type { Teardown } from './wire.ts'
import { inTime } from '../until.ts'

/** A request as it came over HTTP/2, to be answered by the test. */
export interface H2Request {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they came. */
  readonly fields: readonly string[]
  readonly session: Http2Session
}

export interface H2Upstream {
  readonly origin: string
  readonly port: number
  /** Every session so far, in order. */
  readonly sessions: readonly Http2Session[]
  /** The connections under them. */
  readonly sockets: readonly TLSSocket[]
  /** The next request nobody has asked for yet. */
  next(): Promise<H2Request>
}

export interface H2Options extends Pair {
  readonly ca?: string
  readonly settings?: Settings
}

/**
 * A server of HTTP/2 that asks for client certificates where it is given an authority. To HTTP/1.1
 * it says just that.
 */
export async function h2Upstream(
  t: Teardown,
  { cert, key, ca, settings = {} }: H2Options,
): Promise<H2Upstream> {
  const sessions: Http2Session[] = []
  const sockets: TLSSocket[] = []
  const arrived: H2Request[] = []
  const waiting: ((request: H2Request) => void)[] = []
  const server = createSecureServer({
    cert,
    key,
    settings,
    allowHTTP1: true,
    ...(ca !== undefined && { ca, requestCert: true, rejectUnauthorized: false }),
  })
  server.on('session', (session) => {
    sessions.push(session)
    session.on('error', () => undefined)
  })
  server.on('request', (_request, response) => {
    response.end('over HTTP/1.1')
  })
  // With that, node would answer streams too.
  server.removeAllListeners('stream')
  server.on('secureConnection', (socket: TLSSocket) => void sockets.push(socket))
  server.on('stream', (stream: ServerHttp2Stream, headers, _flags, fields: unknown) => {
    stream.on('error', () => undefined)
    const { session } = stream
    if (!session) return
    const request = { stream, headers, session, fields: fields as string[] }
    const waiter = waiting.shift()
    if (waiter) waiter(request)
    else arrived.push(request)
  })
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `https://127.0.0.1:${port}`,
    port,
    sessions,
    sockets,
    next: async () => {
      const request = arrived.shift()
      if (request) return request
      return inTime('the next stream', new Promise<H2Request>((resolve) => waiting.push(resolve)))
    },
  }
}
