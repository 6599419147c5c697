import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:https'
import { constants } from 'node:crypto'
import {
  createServer as createTlsServer,
  type SecureContextOptions,
  type Server as TlsServer,
  type TlsOptions,
  type TLSSocket,
} from 'node:tls'
import { after, keepProcessAlive } from '../../base/clock.ts'
import { canonical } from '../../base/listening-sockets.ts'
import { createServer } from '../../base/node-http.ts'
import { authoritiesIn, clientAnchors } from '../../certificates/bundle.ts'
import { certificatesIn } from '../../config/bootstrap.ts'
import type { ListenerParts, RequestHandling } from './answer.ts'
import { ConnectionLimit } from './connection-limit.ts'
import { closeServer } from './draining.ts'
import { http1Options, serveHttp1, type Drainable } from './http1.ts'
import { Http2Connections } from './http2.ts'
import { limits } from './limits.ts'
import { bindServer, type BoundServer, type ListenTarget } from './listening.ts'
import { securePeerOf } from './peer.ts'

export interface ListenerOptions extends RequestHandling {
  readonly at: readonly ListenTarget[]
  /** The limit of open connections, at all addresses together (see `ConnectionLimit`). */
  readonly maxConnections: number
  /** The limit of those on which no caller is proven; absent: none besides. */
  readonly mostUnproven?: number
  /** Overrides `limits`. */
  readonly stalledMs?: number
  readonly pipelined?: number
}

export interface Listener extends BoundServer {
  readonly connections: Pick<ConnectionLimit, 'open' | 'mostOpen'>
  /**
   * Accepts no more connections and lets requests in flight finish for `graceMs`; then closes what
   * is still open.
   */
  close(graceMs: number): Promise<void>
}

/** Plain HTTP/1.1. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const server = createServer(http1Options())
  const parts = listenerParts(server, options)
  return listener(server, parts.connections, [serveHttp1(server, parts)], options)
}

/** PEM: a certificate with its chain, and its key. */
interface ServingPair {
  readonly certificate: string
  readonly key: string
}

/** The certificate of a TLS listener, and the authorities for clients' certificates. */
export interface ServingCredentials extends ServingPair {
  /** Another certificate, which is shown at this address of the listener alone. */
  readonly elsewhere?: ServingPair & { readonly address: string }
  /** PEM; absent: no client certificate is accepted. */
  readonly clientCa?: string
}

export interface SecureListener extends Listener {
  /**
   * Uses these for new connections. Current connections continue. But if `clientCa` loses a
   * certificate, each of them closes after its requests in flight, and at once if it has had none.
   * A connection whose client has sent a certificate of the former authorities is closed after
   * `limits.withdrawnMs`, whatever is in flight: a watch would otherwise continue as the node for
   * as long as its client wants. An authority that is added ends nothing.
   */
  replaceCredentials(credentials: ServingCredentials): void
}

/**
 * HTTP/2 and HTTP/1.1 over TLS, as the client chooses. Requests client certificates; the handler
 * verifies them.
 */
export async function listenSecurely(
  options: ListenerOptions & { readonly credentials: ServingCredentials },
): Promise<SecureListener> {
  const tls = {
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: limits.handshakeMs,
    requestCert: true,
    rejectUnauthorized: false,
  }
  const server = createSecureServer({
    ...http1Options(),
    ...contextOf(options.credentials),
    ...tls,
  })
  const elsewhere = handshakesElsewhere(server, tls)
  elsewhere.use(options.credentials)
  const parts = listenerParts(server, options)
  const http1 = serveHttp1(server, parts)
  const http2 = new Http2Connections(parts)
  server.once('close', () => http2[Symbol.dispose]())
  // Node's own listeners serve HTTP/1.1: they stay for connections that did not choose HTTP/2.
  const own = server.listeners('secureConnection') as ((socket: TLSSocket) => void)[]
  server.removeAllListeners('secureConnection')
  const vouchedFor = new Set<TLSSocket>()
  server.on('secureConnection', (socket) => {
    const { tls } = securePeerOf(socket, () => authorities)
    if (tls?.certificate ?? tls?.outOfDate) {
      vouchedFor.add(socket)
      socket.once('close', () => vouchedFor.delete(socket))
    }
    if (socket.alpnProtocol === 'h2') http2.serve(socket)
    else for (const take of own) take.call(server, socket)
  })
  // Node would answer a client that does not speak TLS in plain text.
  server.removeAllListeners('tlsClientError')
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  let { clientCa } = options.credentials
  let authorities = authoritiesIn(clientCa ?? '')
  return {
    ...(await listener(server, parts.connections, [http1, http2], options)),
    replaceCredentials: (credentials) => {
      server.setSecureContext(contextOf(credentials))
      elsewhere.use(credentials)
      if (!holdsAllOf(credentials.clientCa, clientCa)) {
        for (const each of [http1, http2]) each.retire()
        // A handshake in progress continues with the former authorities.
        parts.connections.closeUnused()
        const before = [...vouchedFor]
        after(limits.withdrawnMs, () => before.forEach((socket) => socket.destroy()))
      }
      clientCa = credentials.clientCa
      authorities = authoritiesIn(clientCa ?? '')
    },
  }
}

/**
 * Makes the handshakes of connections to one address with another certificate. A TLS server of Node
 * has one for all of its addresses, and clients that call an address send no server name.
 */
function handshakesElsewhere(server: TlsServer, options: TlsOptions) {
  const other = createTlsServer(options)
  let at: string | undefined
  other.on('secureConnection', (socket) => server.emit('secureConnection', socket))
  other.on('tlsClientError', (_error, socket) => socket.destroy())
  const own = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    if (at !== undefined && canonical(socket.localAddress ?? '') === at)
      other.emit('connection', socket)
    else for (const take of own) take.call(server, socket)
  })
  return {
    use: ({ elsewhere, ...credentials }: ServingCredentials): void => {
      at = elsewhere && canonical(elsewhere.address)
      if (elsewhere) other.setSecureContext(contextOf({ ...credentials, ...elsewhere }))
    },
  }
}

/** Whether a bundle has all of the former one, which has nothing but certificates. */
function holdsAllOf(bundle = '', former = ''): boolean {
  if (bundle === former) return true
  const [present, before] = [certificatesIn(bundle), certificatesIn(former)]
  const blocks = former.split('-----BEGIN ').length
  return (
    former !== '' && blocks === before.length + 1 && before.every((each) => present.includes(each))
  )
}

const contextOf = ({ certificate, key, clientCa }: ServingCredentials): SecureContextOptions => ({
  cert: certificate,
  key,
  // Without `ca` Node would accept the system's authorities.
  ca: clientAnchors(clientCa ?? ''),
  minVersion: 'TLSv1.2',
  // A resumed session would keep the former verdict on its certificate; a renegotiated one has
  // another certificate, and Node keeps the verdict on the first.
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
})

function listenerParts(server: Server, options: ListenerOptions): ListenerParts {
  const { handler, onBroken, onCut = () => undefined } = options
  const { maxConnections, mostUnproven } = options
  const { stalledMs = limits.stalledMs, pipelined = limits.pipelined } = options
  const connections = new ConnectionLimit(
    server,
    { most: maxConnections, ...(mostUnproven !== undefined && { mostUnproven }) },
    onCut,
  )
  return { handler, onBroken, onCut, stalledMs, pipelined, connections }
}

/** How long an accepted connection may take to send its first request once the listener closes. */
const firstRequestMs = 1_000

async function listener(
  server: Server,
  connections: ConnectionLimit,
  protocols: readonly Drainable[],
  options: ListenerOptions,
): Promise<Listener> {
  const bound = await bindServer(server, options.at, options.onBroken)
  const stop = async (graceMs: number): Promise<void> => {
    // A connection from which nothing is read keeps no process alive.
    using _alive = keepProcessAlive()
    const over = closeServer(server, bound.closeAdditional())
    for (const protocol of protocols) protocol.drain()
    using _unused = after(firstRequestMs, () => connections.closeUnused())
    using _cut = after(graceMs, () => protocols.forEach((protocol) => protocol.cut()))
    await over
  }
  let stopped: Promise<void> | undefined
  return { ...bound, connections, close: (graceMs) => (stopped ??= stop(graceMs)) }
}
