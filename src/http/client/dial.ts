import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'
import type { Credentials } from '../../config/credentials.ts'
import { undici } from './undici.ts'

/**
 * TCP's own probes, below the time after which NATs forget an idle connection (a minute and up).
 */
export const keepAliveProbeMs = 30_000

/** How long making a connection may take. */
export const connectMs = 5_000

/** The part of TLS options that credentials decide. */
export const tlsOf = ({ ca, certificate, serverName }: Credentials): TlsOptions => ({
  ...(ca !== undefined && { ca }),
  ...(certificate && { cert: certificate.chain, key: certificate.key.reveal() }),
  ...(serverName !== undefined && { servername: serverName }),
})

interface TlsOptions {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

/**
 * Made once for all connections: to parse the authorities and the key for each took a tenth of what
 * a resumed connection costs. `undefined` where OpenSSL refuses them: then each connection says so.
 */
function contextOf(credentials: Credentials): SecureContext | undefined {
  try {
    return createSecureContext(tlsOf(credentials))
  } catch {
    return undefined
  }
}

/** The protocols offered to the server, the preferred one first. */
export type AlpnOffer = 'http/1.1' | 'h2 or http/1.1'

/**
 * Makes connections that show these credentials, and resumes TLS sessions among them alone. Each is
 * probed by TCP while it is idle.
 */
export function dialer(
  credentials: Credentials,
  offer: AlpnOffer,
  timeoutMs: number = connectMs,
): buildConnector.connector {
  const secureContext = contextOf(credentials)
  const connect = undici.buildConnector({
    ...tlsOf(credentials),
    ...(secureContext && { secureContext }),
    allowH2: offer !== 'http/1.1',
    preferH2: true,
    timeout: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveProbeMs,
  })
  const { serverName } = credentials
  // Set for each connection: undici would take the name from the Host field otherwise.
  return (options, callback) =>
    connect({ ...options, ...(serverName !== undefined && { servername: serverName }) }, callback)
}

/** A TLS connection to `origin`; its `alpnProtocol` says what was agreed on. */
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
