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
  /** The same socket as Node passes it to another process. */
  readonly handle: SocketHandle | undefined
}

/** A socket that can be passed over a channel between processes; each process then has a descriptor of its own. */
export interface SocketHandle {
  readonly fd: number
  close(): void
}

/** A server cannot listen where it is to. The message is for an operator, and names the place. */
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
 * Resolves when the server listens; rejects with `CannotListen` where it cannot. Later failures, such as a connection that cannot be
 * accepted for want of file handles, do not end the process: `onBroken` is called with them. A passed socket is closed with the server,
 * but in this process only: another that holds it keeps the port and the connections waiting there.
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

/** Node's API offers neither the number of a listening socket nor what can be passed to another process: both are here only. */
const handleOf = (server: Server): SocketHandle | undefined =>
  (server as { readonly _handle?: SocketHandle })._handle
