import { createServer, type AddressInfo, type Server } from 'node:net'
import {
  joinHostPort,
  describeListener,
  overlap,
  socketsAt,
  type ListenAddress,
} from '../../base/listening-sockets.ts'

/**
 * Where a server listens: at an address, or on a socket that another process bound and passed to
 * this one as a file descriptor.
 */
export type ListenTarget = AddressTarget | { readonly fd: number }

interface AddressTarget {
  readonly host: string
  /** 0: any free port, or for an additional address the port of the first. */
  readonly port: number
  /** The flag that sets the port. */
  readonly portFlag?: string
  /** Skipped where the host has no such address. */
  readonly ifPresent?: boolean
}

/** A listening server. */
export interface BoundServer {
  /** The same at each address. */
  readonly port: number
  /** In the order of the targets; grows with `listenAt`. */
  readonly sockets: readonly BoundSocket[]
  /**
   * Listens at another address of this host, on the same port, unless a socket of the server covers
   * it. Rejects with `CannotListen`.
   */
  readonly listenAt: (target: Pick<AddressTarget, 'host' | 'portFlag'>) => Promise<void>
  /**
   * Accepts no more connections at the additional addresses; the caller closes the server itself.
   * Resolves when their connections have closed, which the caller has to bring about.
   */
  readonly closeAdditional: () => Promise<void>
}

/** A socket on which a server listens. */
export interface BoundSocket {
  readonly at: ListenAddress
}

/**
 * A server cannot listen at a target. The message is for the operator: it names the address, and
 * the program that listens there.
 */
export class CannotListen extends Error {
  readonly code: string
  /** The flag that sets another port. */
  readonly portFlag: string | undefined

  constructor(target: ListenTarget, cause: NodeJS.ErrnoException) {
    super(`${describe(target)} ${reasonFor(target, cause)}`, { cause })
    this.code = cause.code ?? 'UNKNOWN'
    this.portFlag = 'host' in target ? target.portFlag : undefined
  }
}

function reasonFor(target: ListenTarget, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE' && 'host' in target) return takenMessage(target)
  if (code === 'EADDRNOTAVAIL') return 'cannot be used: the address is not one of this host'
  if (code === 'EACCES') return 'cannot be used: this program is not allowed to listen there'
  return `cannot be used: ${message}`
}

/**
 * Names the program that has the address, from the kernel's tables: it may want the tokens of the
 * hub's callers.
 */
function takenMessage({ host, port, portFlag }: AddressTarget): string {
  const otherPort = portFlag === undefined ? '' : `; ${portFlag} sets another port`
  const [found] = socketsAt({ address: host, port })
  if (!found) {
    return `is taken, and no socket that listens there is seen: a program has bound it without listening${otherPort}`
  }
  const strange =
    found.uid === process.getuid?.() ? '' : ', and reads what clients of this program send there'
  return `is taken: ${describeListener(found)}${strange}${otherPort}`
}

const describe = (target: ListenTarget): string =>
  'fd' in target
    ? `the socket passed as file descriptor ${target.fd}`
    : joinHostPort({ address: target.host, port: target.port })

/**
 * How many ports are tried where any will do, and another program has the chosen one at an
 * additional address.
 */
const mostDraws = 20

/**
 * Resolves when the server listens at all targets. Rejects with `CannotListen` where it cannot, and
 * then listens nowhere. Later failures, such as a connection that cannot be accepted for lack of
 * file descriptors, do not end the process: they go to `onBroken`. A passed socket is closed with
 * the server in this process only: another process that holds it keeps the port and the connections
 * that wait there.
 */
export async function bindServer(
  server: Server,
  targets: readonly ListenTarget[],
  onBroken: (cause: unknown) => void,
): Promise<BoundServer> {
  const [first, ...further] = targets
  if (first === undefined) throw new Error('a server needs an address to listen at')
  const isDrawn = 'port' in first && first.port === 0
  for (let draw = 1; ; draw += 1) {
    const failure = await bind(server, first)
    if (failure) throw new CannotListen(first, failure)
    const { port } = server.address() as AddressInfo
    const accepting = await additionalServers(server, further, port)
    if ('failure' in accepting) {
      await closed(server)
      if (isDrawn && accepting.failure.code === 'EADDRINUSE' && draw < mostDraws) continue
      throw new CannotListen(accepting.target, accepting.failure)
    }
    const all = [server, ...accepting.servers]
    const others = [...accepting.servers]
    for (const each of all) each.on('error', onBroken)
    let isClosing = false
    const sockets = all.map(socketOf)
    return {
      port,
      sockets,
      listenAt: async ({ host, portFlag }) => {
        if (isClosing || sockets.some(({ at }) => overlap(at.address, host))) return
        const target = { host, port, ...(portFlag !== undefined && { portFlag }) }
        const next = acceptingFor(server)
        const failure = await bind(next, target)
        if (failure) throw new CannotListen(target, failure)
        if (isClosing) return closed(next)
        others.push(next.on('error', onBroken))
        sockets.push(socketOf(next))
      },
      closeAdditional: async () => {
        isClosing = true
        await Promise.all(others.map(closed))
      },
    }
  }
}

/** Resolves when the server listens, or to the reason why it does not. */
async function bind(
  server: Server,
  target: ListenTarget,
): Promise<NodeJS.ErrnoException | undefined> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | undefined>()
  const listens = (): void => resolve(undefined)
  server.once('error', resolve).once('listening', listens)
  server.listen('fd' in target ? { fd: target.fd } : { host: target.host, port: target.port })
  try {
    return await promise
  } finally {
    server.off('error', resolve).off('listening', listens)
  }
}

interface BindFailure {
  readonly target: ListenTarget
  readonly failure: NodeJS.ErrnoException
}

/**
 * Servers that accept for another at additional addresses, and pass their connections to it. None
 * is left where one cannot listen.
 */
async function additionalServers(
  server: Server,
  targets: readonly ListenTarget[],
  port: number,
): Promise<{ readonly servers: readonly Server[] } | BindFailure> {
  const servers: Server[] = []
  for (const each of targets) {
    const target = 'port' in each && each.port === 0 ? { ...each, port } : each
    const next = acceptingFor(server)
    const failure = await bind(next, target)
    if (!failure) servers.push(next)
    else if (!(isMissingAddress(failure) && 'host' in target && target.ifPresent === true)) {
      await Promise.all(servers.map(closed))
      return { target, failure }
    }
  }
  return { servers }
}

/** A server that passes its connections to `server`. */
const acceptingFor = (server: Server): Server =>
  createServer(optionsOf(server), (socket) => server.emit('connection', socket))

/** Whether this host has no such address. */
export const isMissingAddress = ({ code }: { readonly code?: string }): boolean =>
  code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'

/**
 * A server's socket options. Node keeps them in undocumented members, and its HTTP servers differ
 * from plain ones.
 */
function optionsOf(server: Server): object {
  const { allowHalfOpen, noDelay, highWaterMark } = server as object as Readonly<
    Record<string, unknown>
  >
  return { allowHalfOpen, noDelay, highWaterMark }
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => server.close(() => resolve()))

function socketOf(server: Server): BoundSocket {
  const { address, port } = server.address() as AddressInfo
  return { at: { address, port } }
}
