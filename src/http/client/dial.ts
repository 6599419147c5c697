import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'
import { after } from '../../base/clock.ts'
import type { Credentials } from '../../config/credentials.ts'
import { undici } from './undici.ts'
import { ConnectTimeout } from './wire-error.ts'

/** TCP keep-alive, below the time after which NATs drop an idle connection (a minute and more). */
export const keepAliveProbeMs = 30_000

/** The timeout for opening a connection. */
export const connectMs = 5_000

/** The TLS options that depend on the credentials. */
const tlsOf = ({ ca, certificate, serverName }: Credentials): TlsOptions => ({
  ...(ca !== undefined && { ca }),
  allowPartialTrustChain: true,
  ...(certificate && { cert: certificate.chain, key: certificate.key.reveal() }),
  ...(serverName !== undefined && { servername: serverName }),
})

interface TlsOptions {
  readonly ca?: string
  /** As in Go, each certificate of `ca` is an anchor. */
  readonly allowPartialTrustChain: true
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

const contexts = new WeakMap<Credentials, SecureContext>()

/**
 * Created once for all connections with these credentials, of every dialer: parsing the authorities
 * and the key took a tenth of the cost of a resumed connection. `undefined` where OpenSSL rejects
 * them: each connection then reports that.
 */
function contextOf(credentials: Credentials): SecureContext | undefined {
  const known = contexts.get(credentials)
  if (known) return known
  try {
    const context = createSecureContext(tlsOf(credentials))
    contexts.set(credentials, context)
    return context
  } catch {
    return undefined
  }
}

/** The TLS options of a connection with these credentials. */
export function connectionTls(credentials: Credentials) {
  const secureContext = contextOf(credentials)
  return { ...tlsOf(credentials), ...(secureContext && { secureContext }) }
}

/** The ALPN protocols offered to the server, the preferred one first. */
export type AlpnOffer = 'http/1.1' | 'h2 or http/1.1'

/**
 * Makes a connector that uses these credentials, and resumes TLS sessions among its own connections
 * only. TCP probes each connection while it is idle.
 */
export function dialer(
  credentials: Credentials,
  offer: AlpnOffer,
  timeoutMs: number = connectMs,
): buildConnector.connector {
  const connect = undici.buildConnector({
    ...connectionTls(credentials),
    allowH2: offer !== 'http/1.1',
    preferH2: true,
    timeout: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveProbeMs,
  })
  const { serverName } = credentials
  // Set for each connection: otherwise undici takes the name from the Host field.
  return (options, callback) =>
    connect({ ...options, ...(serverName !== undefined && { servername: serverName }) }, callback)
}

/** Opens a TLS connection to `origin`; its `alpnProtocol` is the agreed protocol. */
export function dial(connect: buildConnector.connector, origin: string): Promise<TLSSocket> {
  const { protocol, hostname, host, port } = new URL(origin)
  return new Promise((resolve, reject) => {
    connect(
      { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), host, port },
      (error: Error | null, socket: Socket | TLSSocket | null) => {
        if (socket) resolve(socket as TLSSocket)
        else reject(error ?? new Error(`no connection to ${origin}`))
      },
    )
  })
}

/**
 * Resolves once `event` says that a socket is connected. Destroys it and rejects after `connectMs`.
 */
export function connected<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  origin: string,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const patience = after(connectMs, () =>
      socket.destroy(new ConnectTimeout(origin, 'connection to', connectMs)),
    )
    socket.once(event, () => {
      patience[Symbol.dispose]()
      resolve(socket)
    })
    socket.once('error', (error) => {
      patience[Symbol.dispose]()
      reject(error)
    })
  })
}
