import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { inodeOfSocket } from '../../base/socket-table.ts'
import type { ClientCertificate, Peer } from '../exchange/exchange.ts'

const peers = new WeakMap<Socket, Peer>()

/** The other end of a connection: one object for all its requests. */
export function peerOf(socket: Socket): Peer {
  const known = peers.get(socket)
  if (known) return known
  const peer: Peer = {
    address: socket.remoteAddress ?? '',
    port: socket.remotePort ?? 0,
    localAddress: socket.localAddress ?? '',
    localPort: socket.localPort ?? 0,
    ...(socket instanceof TLSSocket ? { tls: certificateOn(socket) } : inodeOn(socket)),
  }
  peers.set(socket, peer)
  return peer
}

/** Must be called while the connection receives a request. */
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
  const { subject, valid_from, valid_to } = socket.getPeerCertificate()
  return {
    certificate: {
      commonName: lastOf(subject?.CN),
      organizations: [subject?.O ?? []].flat(),
      validFrom: Date.parse(valid_from),
      validTo: Date.parse(valid_to),
    },
  }
}

const lastOf = (names: string | readonly string[] | undefined): string =>
  (typeof names === 'string' ? names : names?.at(-1)) ?? ''
