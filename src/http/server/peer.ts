import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { isWithinHost } from '../../api/request/host-check.ts'
import { inodeOfSocket } from '../../base/socket-table.ts'
import { validityOfChain } from '../../certificates/chain-validity.ts'
import type { ClientCertificate, Peer } from '../exchange/exchange.ts'

const peers = new WeakMap<Socket, Peer>()

/** The other end of a connection: one object for all its requests. */
export function peerOf(socket: Socket): Peer {
  const known = peers.get(socket)
  if (known) return known
  const peer: Peer = {
    ...endsOf(socket),
    ...(socket instanceof TLSSocket ? { tls: certificateOn(socket) } : inodeOn(socket)),
  }
  peers.set(socket, peer)
  return peer
}

/**
 * The same of a TLS connection whose handshake has just ended: on loopback its client may also show
 * a certificate of these authorities that is out of its dates, or none.
 */
export function securePeerOf(
  socket: TLSSocket,
  authorities: () => readonly X509Certificate[],
): Peer {
  const ends = endsOf(socket)
  const peer = { ...ends, ...credentialsOn(socket, isWithinHost(ends), authorities) }
  peers.set(socket, peer)
  return peer
}

function credentialsOn(
  socket: TLSSocket,
  isOwnHost: boolean,
  authorities: () => readonly X509Certificate[],
): Pick<Peer, 'tls' | 'inode'> {
  if (!isOwnHost || socket.authorized) return { tls: certificateOn(socket) }
  if (!socket.getPeerX509Certificate())
    return { tls: { withoutCertificate: true }, ...inodeOn(socket) }
  const outOfDate = outOfDateOn(socket, authorities)
  return { tls: outOfDate ? { outOfDate } : {} }
}

const endsOf = (socket: Socket) => ({
  address: socket.remoteAddress ?? '',
  port: socket.remotePort ?? 0,
  localAddress: socket.localAddress ?? '',
  localPort: socket.localPort ?? 0,
})

/** Must be called while the connection receives something. */
function inodeOn(socket: Socket): { readonly inode?: string } {
  const inode = inodeOfSocket(socket)
  return inode === undefined ? {} : { inode }
}

/**
 * A certificate counts only if one of the listener's authorities signed it; an API server also
 * ignores any other.
 */
function certificateOn(socket: TLSSocket): { readonly certificate?: ClientCertificate } {
  if (!socket.authorized) return {}
  const { valid_from: from, valid_to: to } = socket.getPeerCertificate()
  const validity = { validFrom: Date.parse(from), validTo: Date.parse(to) }
  return { certificate: { ...subjectOn(socket), ...validity } }
}

const dateFaults = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/**
 * A certificate of which a date alone is wrong, or one in its chain. The handshake has proved its
 * key; a reader has to decide whether its dates matter.
 */
function outOfDateOn(
  socket: TLSSocket,
  authorities: () => readonly X509Certificate[],
): ClientCertificate | undefined {
  // Node declares an Error, and sets its code.
  if (socket.authorized || !dateFaults.has(String(socket.authorizationError))) return undefined
  const leaf = socket.getPeerX509Certificate()
  const validity = leaf && validityOfChain(leaf, authorities())
  return validity && { ...subjectOn(socket), validFrom: validity.from, validTo: validity.to }
}

function subjectOn(socket: TLSSocket): Omit<ClientCertificate, 'validFrom' | 'validTo'> {
  const { subject, fingerprint256: fingerprint } = socket.getPeerCertificate()
  const organizations = [subject?.O ?? []].flat()
  return { commonName: lastOf(subject?.CN), organizations, fingerprint }
}

const lastOf = (names: string | readonly string[] | undefined): string =>
  (typeof names === 'string' ? names : names?.at(-1)) ?? ''
