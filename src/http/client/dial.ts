import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'
import type { Credentials } from '../../config/credentials.ts'
import { tcpConnection } from './tcp.ts'
import { undici } from './undici.ts'

/** The timeout for a lookup, and again for opening a connection over TCP. */
export const connectMs = 5_000

/** A TLS handshake may take so many times as long: it goes back and forth several times. */
const handshakeShare = 2

export const handshakeMs = handshakeShare * connectMs

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
  limitMs: number = connectMs,
): buildConnector.connector {
  const secure = undici.buildConnector({
    ...connectionTls(credentials),
    allowH2: offer !== 'http/1.1',
    preferH2: true,
    timeout: handshakeShare * limitMs,
    // TCP has it already.
    keepAlive: false,
  })
  const { serverName } = credentials
  // Set for each connection: otherwise undici takes the name from the Host field.
  return (options, callback) => {
    const { hostname, protocol, port } = options
    tcpConnection({ host: hostname, port: portOf(protocol, port), limitMs }).then(
      (socket) => {
        if (protocol !== 'https:') return callback(null, socket)
        const name = serverName !== undefined && { servername: serverName }
        secure({ ...options, ...name, httpSocket: socket }, callback)
      },
      (error: Error) => callback(error, null),
    )
  }
}

export const portOf = (protocol: string, port: string): number =>
  Number(port || (protocol === 'https:' ? 443 : 80))

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
