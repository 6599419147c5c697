import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { Wire, type Teardown } from './wire.ts'
import { inTime } from '../until.ts'

export interface RawUpstream {
  readonly origin: string
  readonly port: number
  /** Every connection made so far, in order. */
  readonly connections: readonly Wire[]
  /** The next connection nobody has asked for yet. */
  next(): Promise<Wire>
  /** The same, once the head of a request has come on it, and was read. */
  asked(): Promise<Wire>
  /** Gives each connection to `serve`, for as long as the test lasts: there is no next one then. */
  each(serve: (wire: Wire) => void): void
  /** Listens no more; connections stay. */
  stop(): Promise<void>
}

/** A server of bytes: what is sent on each connection is up to the test. */
export async function rawUpstream(t: Teardown, tls?: TlsOptions): Promise<RawUpstream> {
  const connections: Wire[] = []
  const arrived: Wire[] = []
  const waiting: ((wire: Wire) => void)[] = []
  let serving: ((wire: Wire) => void) | undefined
  const accept = (socket: Duplex): void => {
    const wire = new Wire(socket)
    connections.push(wire)
    const waiter = serving ?? waiting.shift()
    if (waiter) waiter(wire)
    else arrived.push(wire)
  }
  const server: Server = tls
    ? createTlsServer({ ...tls, allowHalfOpen: true }, accept)
    : createServer({ allowHalfOpen: true, noDelay: true }, accept)
  const stop = async (): Promise<void> => {
    if (server.listening) server.close()
  }
  t.teardown(async () => {
    await stop()
    for (const wire of connections) wire.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const next = async (): Promise<Wire> => {
    const wire = arrived.shift()
    if (wire) return wire
    const coming = new Promise<Wire>((resolve) => waiting.push(resolve))
    return inTime(`connection ${connections.length + 1}`, coming)
  }
  return {
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    connections,
    next,
    async asked() {
      const wire = await next()
      await wire.head()
      return wire
    },
    each(serve) {
      serving = serve
      for (const wire of arrived.splice(0)) serve(wire)
    },
    stop,
  }
}

/**
 * A port of loopback that refuses connections: one that was given out a moment ago and closed
 * again.
 */
export async function refusingOrigin(): Promise<string> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}

/** A whole answer of known length. */
export const answerOf = (body: string, head = 'HTTP/1.1 200 OK'): string =>
  `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
