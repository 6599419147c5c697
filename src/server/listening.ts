import type { AddressInfo, Server } from 'node:net'
import { isIPv6 } from 'node:net'

/** Where a server listens: at an address, or on a socket that was bound elsewhere and passed to this process as a file descriptor. */
export type Place =
  | {
      readonly host: string
      /** 0: any free port. */
      readonly port: number
    }
  | { readonly fd: number }

/** A server that listens. */
export interface Bound {
  readonly port: number
  /** The listening socket, for a process that is to go on with it; -1 where the system has no such number. */
  readonly fd: number
  /** The same for another process to hold, and to give back. */
  readonly handle: SocketHandle | undefined
}

/** A socket as processes that share a channel pass it to each other: each has a descriptor of its own then. */
export interface SocketHandle {
  readonly fd: number
  close(): void
}

/** There is no listening there. The message is for an operator, and names the place. */
export class CannotListen extends Error {
  readonly code: string

  constructor(place: Place, cause: NodeJS.ErrnoException) {
    super(`${shown(place)} ${reasons[cause.code ?? ''] ?? `cannot be used: ${cause.message}`}`, {
      cause,
    })
    this.code = cause.code ?? 'UNKNOWN'
  }
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken: another program listens there',
  EADDRNOTAVAIL: 'cannot be used: the address is not one of this host',
  EACCES: 'cannot be used: this program is not allowed to listen there',
}

const shown = (place: Place): string =>
  'fd' in place
    ? `the socket passed as file descriptor ${place.fd}`
    : `${isIPv6(place.host) ? `[${place.host}]` : place.host}:${place.port}`

/**
 * Resolves when the server listens; rejects with `CannotListen` where it cannot. No later failure ends the process: `onBroken` is told
 * of it, as of connections that could not be taken when file handles run out. A passed socket is closed with the server, in this
 * process: whoever else holds it keeps its place, and the connections that wait there.
 */
export async function listening(
  server: Server,
  place: Place,
  onBroken: (cause: unknown) => void,
): Promise<Bound> {
  await new Promise<void>((resolve, reject) => {
    const failed = (cause: Error): void => reject(new CannotListen(place, cause))
    server.once('error', failed)
    const where = 'fd' in place ? { fd: place.fd } : { host: place.host, port: place.port }
    server.listen(where, () => {
      server.off('error', failed)
      resolve()
    })
  })
  server.on('error', onBroken)
  const handle = handleOf(server)
  return { port: (server.address() as AddressInfo).port, fd: handle?.fd ?? -1, handle }
}

/** Node passes sockets on by their numbers and by this, and offers neither by another name. */
const handleOf = (server: Server): SocketHandle | undefined =>
  (server as { readonly _handle?: SocketHandle })._handle
