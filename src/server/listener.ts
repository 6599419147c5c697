import { createServer, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { constants } from 'node:crypto'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import { after } from '../base/clock.ts'
import type { Served, Service } from './answer.ts'
import { Crowd } from './crowd.ts'
import { closed } from './draining.ts'
import { http1Options, serveHttp1, type Closing } from './http1.ts'
import { Http2Connections } from './http2.ts'
import { limits } from './limits.ts'
import { listening, type Bound, type Place } from './listening.ts'

export type ListenerOptions = Place &
  Service & {
    /** How many connections are kept open at most (see `Crowd`). */
    readonly maxConnections: number
    /** Instead of the limit's own, in milliseconds. */
    readonly stalledMs?: number
  }

export interface Listener extends Bound {
  /**
   * Takes no more connections and lets requests under way finish for `graceMs`; what is still open then is cut.
   */
  close(graceMs: number): Promise<void>
}

export interface ProxyListener extends Listener {
  /** Begins what `close` does, and resolves when no request is to be answered any more, and nothing is open but what lasts by itself. */
  settle(graceMs: number): Promise<void>
}

/** Plain HTTP/1.1. */
export async function listen(options: ListenerOptions): Promise<ProxyListener> {
  const server = createServer(http1Options)
  const service = served(server, options)
  return listener(server, service.crowd, [serveHttp1(server, service)], options)
}

/** What a TLS listener shows its clients, and whom it lets vouch for them. */
export interface ServingCredentials {
  /** PEM: the certificate with its chain, and its key. */
  readonly certificate: string
  readonly key: string
  /** PEM; absent: no certificate of a client counts. */
  readonly clientCa?: string
}

export interface SecureListener extends ProxyListener {
  /**
   * Connections made from now on are shown these; those there are go on. Where others vouch for clients now, each ends after the
   * requests under way: nobody is believed any longer for a certificate of those before.
   */
  replaceCredentials(credentials: ServingCredentials): void
}

/** HTTP/2 and HTTP/1.1 over TLS, as the client chooses. Certificates are asked for, and judged by whoever answers. */
export async function listenSecurely(
  options: ListenerOptions & { readonly credentials: ServingCredentials },
): Promise<SecureListener> {
  const server = createSecureServer({
    ...http1Options,
    ...contextOf(options.credentials),
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: limits.handshakeMs,
    requestCert: true,
    rejectUnauthorized: false,
  })
  const service = served(server, options)
  const http1 = serveHttp1(server, service)
  const http2 = new Http2Connections(service)
  // The server's own way with a connection, HTTP/1.1, stays for those that did not choose the other.
  const own = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[]
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol === 'h2') http2.take(socket)
    else for (const take of own) take.call(server, socket)
  })
  // Nothing that is no TLS is answered in the clear.
  server.removeAllListeners('tlsClientError')
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  let { clientCa } = options.credentials
  return {
    ...(await listener(server, service.crowd, [http1, http2], options)),
    replaceCredentials: (credentials) => {
      server.setSecureContext(contextOf(credentials))
      if (credentials.clientCa !== clientCa) for (const each of [http1, http2]) each.retire()
      clientCa = credentials.clientCa
    },
  }
}

const contextOf = ({ certificate, key, clientCa }: ServingCredentials): SecureContextOptions => ({
  cert: certificate,
  key,
  // Without any, Node would take the system's authorities for the cluster's.
  ca: clientCa ?? [],
  minVersion: 'TLSv1.2',
  // A session taken up again would bring along what was thought of its certificate then.
  secureOptions: constants.SSL_OP_NO_TICKET,
})

function served(server: Server, options: ListenerOptions): Served {
  const { handler, onBroken, onCut = () => undefined, stalledMs = limits.stalledMs } = options
  const crowd = new Crowd(server, options.maxConnections, onCut)
  return { handler, onBroken, onCut, stalledMs, crowd }
}

/** How long a connection that was accepted and has asked for nothing yet may take to do so, once the listener is to stop. */
const firstRequestMs = 1_000

async function listener(
  server: Server,
  crowd: Crowd,
  protocols: readonly Closing[],
  options: ListenerOptions,
): Promise<ProxyListener> {
  const bound = await listening(server, options, options.onBroken)
  const stop = async (graceMs: number): Promise<void> => {
    const over = closed(server)
    for (const protocol of protocols) protocol.drain()
    using _strangers = after(firstRequestMs, () => crowd.dismissStrangers())
    using _cut = after(graceMs, () => protocols.forEach((protocol) => protocol.cut()))
    await over
  }
  let stopped: Promise<void> | undefined
  const close = (graceMs: number): Promise<void> => (stopped ??= stop(graceMs))
  return {
    ...bound,
    close,
    settle: async (graceMs) => {
      await Promise.race([close(graceMs), crowd.atRest()])
    },
  }
}
