import { createServer, type AddressInfo, type Server } from 'node:net'
import { LightAbort, type AbortSignalLike } from '../../base/abort.ts'
import {
  joinHostPort,
  describeListener,
  socketsAt,
  type ListenAddress,
} from '../../base/listening-sockets.ts'

/**
 * Where a server listens: at an address, or on a socket that was bound elsewhere and passed to this
 * process as a file descriptor.
 */
export type ListenTarget =
  | {
      readonly host: string
      /** 0: any free port; for a further place of a server, the port of its first. */
      readonly port: number
      /** The flag that sets the port. */
      readonly portFlag?: string
      /** Left out where the host has no such address. */
      readonly ifPresent?: boolean
    }
  | { readonly fd: number }

/** A server that listens. */
export interface BoundServer {
  /** The same at each of its targets. */
  readonly port: number
  /** In the order of the targets. */
  readonly sockets: readonly BoundSocket[]
  /**
   * Takes no more connections at the places after the first, which is the server's own to close;
   * resolves when those that came in there have closed, which is for others to bring about.
   */
  readonly closeAdditional: () => Promise<void>
}

/** A socket on which a server listens. */
export interface BoundSocket {
  readonly at: ListenAddress
  /** For a process that is to go on with it; -1 where the system has no such number. */
  readonly fd: number
  /** The same socket as Node passes it to another process. */
  readonly handle: SocketHandle | undefined
  /**
   * Accepts connections on another descriptor of the same socket, too, and closes it with the
   * server.
   */
  readonly acceptOn: (handle: SocketHandle) => Promise<void>
  /** Aborted once the server takes no more connections. */
  readonly closing: AbortSignalLike
}

/**
 * A socket that can be passed over a channel between processes; each process then has a descriptor
 * of its own.
 */
export interface SocketHandle {
  readonly fd: number
  close(): void
}

/**
 * A server cannot listen where it is to. The message is for an operator: it names the place, and
 * who is there.
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
 * Who has the place, by the kernel's tables: what answers there may be after the tokens of those
 * who call the hub.
 */
function takenMessage({ host, port, portFlag }: Extract<ListenTarget, { host: string }>): string {
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
 * How many ports are tried where any will do, and another program has the one that was drawn at a
 * further place.
 */
const mostDraws = 20

/**
 * Resolves when the server listens at all of its places; rejects with `CannotListen` where it
 * cannot, and listens nowhere then. Later failures, such as a connection that cannot be accepted
 * for want of file handles, do not end the process: `onBroken` is called with them. A passed socket
 * is closed with the server, but in this process only: another that holds it keeps the port and the
 * connections waiting there.
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
    const closing = new LightAbort()
    const acceptOn = async (handle: SocketHandle): Promise<void> => {
      const next = acceptingFor(server).on('error', onBroken)
      if (closing.aborted || (await bind(next, handle))) return handle.close()
      if (closing.aborted) await closed(next)
      else others.push(next)
    }
    return {
      port,
      sockets: all.map((each) => ({ ...socketOf(each), acceptOn, closing })),
      closeAdditional: async () => {
        closing.abort('the server takes no more connections')
        await Promise.all(others.map(closed))
      },
    }
  }
}

/** Resolves when the server listens, or to why it does not. */
async function bind(
  server: Server,
  target: ListenTarget | SocketHandle,
): Promise<NodeJS.ErrnoException | undefined> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | undefined>()
  const listens = (): void => resolve(undefined)
  server.once('error', resolve).once('listening', listens)
  if ('close' in target) server.listen(target)
  else server.listen('fd' in target ? { fd: target.fd } : { host: target.host, port: target.port })
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
 * Servers that accept at further places for another, whose own connections these become; none are
 * left where one cannot listen.
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

/** A server whose connections become those of `server`. */
const acceptingFor = (server: Server): Server =>
  createServer(optionsOf(server), (socket) => server.emit('connection', socket))

/** Whether this host has no such address. */
export const isMissingAddress = ({ code }: { readonly code?: string }): boolean =>
  code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT'

/**
 * How a server takes its sockets. Node keeps that in members it does not document, and its servers
 * for HTTP differ from its plain ones.
 */
function optionsOf(server: Server): object {
  const { allowHalfOpen, noDelay, highWaterMark } = server as object as Readonly<
    Record<string, unknown>
  >
  return { allowHalfOpen, noDelay, highWaterMark }
}

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => server.close(() => resolve()))

/**
 * Node's API offers neither the number of a listening socket nor what can be passed to another
 * process: both are here only.
 */
function socketOf(server: Server): Pick<BoundSocket, 'at' | 'fd' | 'handle'> {
  const handle = (server as { readonly _handle?: SocketHandle })._handle
  const { address, port } = server.address() as AddressInfo
  return { at: { address, port }, fd: handle?.fd ?? -1, handle }
}
