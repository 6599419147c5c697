import { isIPv6, type Server, type Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { ipv6Bytes } from '../../base/ip-bytes.ts'
import { isLoopback } from '../../api/request/host-check.ts'
import { nodeIdentity, type Identity } from '../../api/request/identity.ts'
import type { ConnectionMemory, AccountedConnection } from './connection-memory.ts'
import { limits } from './limits.ts'
import { maxBy, ConnectionRanks, type ConnectionRank } from './ranks.ts'

/** Why the hub closed a connection that its client had left open. */
export type CutReason = 'full' | 'memory' | 'stalled' | 'pipelined' | 'records' | 'parts'

export type OnCut = (why: CutReason) => void

/** A request in flight on a connection, until disposed. */
export interface RequestActivity extends Disposable {
  /** Marks the answer as long-running: `onlyLongRunning` does not wait for its end. */
  markLongRunning(): void
  /**
   * Has to be called when the pipeline has authenticated the caller: its proven identity counts for
   * the connection from then on. The last of several callers on one connection counts, but the node
   * has precedence: a token's holder may turn out to be a service account later.
   */
  readonly proven: (identity: Identity) => void
  /** Has to be called when the proof is withdrawn before the answer. */
  readonly disproven: () => void
  /**
   * Has to be called with the status of the answer. A 401 to an unproven caller returns the
   * connection to the unproven ones, unless it is the node's. Returns whether the connection has
   * had too many refusals in a row and has to end with this one.
   */
  answered(status: number): boolean
  /** Has to be called with the bytes now buffered on the request's stream, in both directions. */
  setWaitingBytes(bytes: number): void
  /** Whether a caller has been proven on this connection. */
  readonly onProvenConnection: boolean
}

interface Connection extends AccountedConnection {
  readonly name: string
  readonly socket: Socket
  /** The network of the client: the connection's owner until a caller is proven. */
  readonly network: string
  rank: ConnectionRank
  owner: string
  bytes: number
  /**
   * What a head in the process of being read may hold. Included in `bytes` while the caller is
   * unproven, as nothing measures it.
   */
  headAllowance: number
  open: boolean
  /** Whether it has carried a request. */
  used: boolean
  underWay: number
  /** How many of these are long-running. */
  longRunning: number
  /** The sequence number of when it last became idle, or busy. */
  since: number
  /** Refusals since a caller was last proven. */
  refusals: number
  onProven: () => void
  onDisproven: () => void
}

/** The limits of a listener's connections. */
export interface ConnectionBounds {
  readonly most: number
  /** The limit of connections on which no caller is proven; absent: no further limit. */
  readonly mostUnproven?: number
}

/** The share of the connections that only the node can use. */
export const reservedShare = 1 / 8

/**
 * Limits the open connections of one listener. A connection over the limit closes another one:
 * first the oldest unproven one, of the address with most of them, even in the middle of a request;
 * then a caller's (see `#nextCallerToClose`). The node's are last, and only while idle: where all
 * connections are the node's and busy, the new one is closed. Callers have at most seven eighths,
 * so that the node always finds room.
 */
export class ConnectionLimit {
  readonly #most: number
  readonly #mostCallers: number
  readonly #memory: ConnectionMemory
  readonly #onCut: OnCut
  readonly #base: number
  readonly #mostUnproven: number
  readonly #ranks = new ConnectionRanks<Connection>()
  readonly #all = new Map<string, Connection>()
  /** By the socket that requests arrive on. */
  readonly #bySocket = new WeakMap<Socket, Connection>()
  #sequence = 0
  #onChange: () => void = () => undefined

  constructor(
    server: Server,
    { most, mostUnproven = Infinity }: ConnectionBounds,
    memory: ConnectionMemory,
    onCut: OnCut,
  ) {
    this.#most = most
    this.#mostCallers = most - Math.floor(most * reservedShare)
    this.#memory = memory
    this.#onCut = onCut
    this.#mostUnproven = mostUnproven
    this.#base = server instanceof TlsServer ? limits.tlsBytes : limits.connectionBytes
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  #accept(socket: Socket): void {
    const name = nameOf(socket)
    // No two connections have the same addresses and ports: the client has reset the former one,
    // and Node has not noticed yet.
    const former = this.#all.get(name)
    if (former) this.#close(former)
    const { unproven } = this.#ranks
    if (this.#all.size >= this.#most || unproven.size >= this.#mostUnproven) {
      this.#onCut('full')
      const leaving = this.#nextToClose()
      if (!leaving) return void socket.destroy()
      this.#close(leaving)
    }
    const network = networkOf(socket)
    const entering: Connection = {
      name,
      socket,
      network,
      rank: 'unproven',
      owner: network,
      bytes: this.#base + limits.headBytes,
      headAllowance: limits.headBytes,
      open: true,
      used: false,
      underWay: 0,
      longRunning: 0,
      since: this.#sequence++,
      refusals: 0,
      onProven: () => undefined,
      onDisproven: () => undefined,
      shed: () => {
        this.#onCut('memory')
        this.#close(entering)
      },
    }
    this.#all.set(entering.name, entering)
    this.#ranks.unproven.add(entering)
    socket.once('close', () => this.#remove(entering))
    this.#memory.add(entering)
  }

  #nextToClose(): Connection | undefined {
    const [oldest] = this.#ranks.unproven.withMostConnections()?.members ?? []
    return (
      oldest ??
      this.#nextCallerToClose() ??
      idleForLongest(this.#ranks.node.withMostConnections()?.members ?? [])
    )
  }

  /**
   * The connection to close of the identity with most connections: the one that has been idle for
   * longest, or else the one whose request began last.
   */
  #nextCallerToClose(): Connection | undefined {
    const members = this.#ranks.caller.withMostConnections()?.members ?? []
    return idleForLongest(members) ?? maxBy(members, ({ since }) => since)
  }

  /**
   * Has to be called when a request begins, with the connection or the TLS socket over it, and the
   * size of the request's head.
   */
  beginRequest(socket: Socket, headBytes: number): RequestActivity {
    const connection = this.#of(socket)
    let held = limits.requestBytes + headBytes
    let longRunning = 0
    let over = !connection
    let isProven = false
    if (connection) {
      connection.used = true
      if (connection.underWay++ === 0) connection.since = this.#sequence++
      this.#addBytes(connection, held)
      this.#onChange()
    }
    const setWaitingBytes = (bytes: number): void => {
      if (over || !connection) return
      const more = limits.requestBytes + headBytes + bytes - held
      held += more
      if (more !== 0) this.#addBytes(connection, more)
    }
    return {
      get onProvenConnection() {
        return connection !== undefined && connection.rank !== 'unproven'
      },
      markLongRunning: () => {
        if (over || !connection) return
        connection.longRunning += 1 - longRunning
        longRunning = 1
        this.#onChange()
      },
      proven: (identity) => {
        isProven = true
        if (connection?.open) this.#proven(connection, identity)
      },
      disproven: () => {
        isProven = false
      },
      answered: (status) => {
        if (!connection || isProven || !isRefusal(status)) return false
        if (status === 401 && connection.open) this.#disproven(connection)
        connection.refusals++
        return connection.refusals >= limits.refusals
      },
      setWaitingBytes,
      [Symbol.dispose]: () => {
        if (over || !connection) return
        over = true
        connection.longRunning -= longRunning
        this.#addBytes(connection, -held)
        if (--connection.underWay === 0) connection.since = this.#sequence++
        this.#onChange()
      },
    }
  }

  /**
   * Has to be called for a connection that speaks HTTP/2. Calls `onProven` each time that it leaves
   * the unproven ones.
   */
  markHttp2(socket: Socket, onProven: () => void): void {
    const connection = this.#of(socket)
    if (!connection) return
    connection.onProven = onProven
    connection.headAllowance += limits.http2HeadBytes
    this.#addBytes(connection, limits.http2HeadBytes)
  }

  /**
   * The bytes received on a connection, including those of TLS; `undefined` once a caller is proven
   * on it, or it has closed.
   */
  unprovenBytes(socket: Socket): number | undefined {
    return this.isUnproven(socket) ? this.#of(socket)?.socket.bytesRead : undefined
  }

  /** Whether the connection is open and no caller is proven on it. */
  isUnproven(socket: Socket): boolean {
    return this.#of(socket)?.rank === 'unproven'
  }

  /** Calls `onDisproven` each time that the connection returns to the unproven ones. */
  watchDisproof(socket: Socket, onDisproven: () => void): void {
    const connection = this.#of(socket)
    if (connection) connection.onDisproven = onDisproven
  }

  #proven(connection: Connection, identity: Identity): void {
    connection.refusals = 0
    const rank = identity === nodeIdentity ? 'node' : 'caller'
    const { rank: before } = connection
    const isKnown = before === 'caller' && rank === before && connection.owner === identity
    if (isKnown || before === 'node') return
    this.#move(connection, rank, identity)
    if (before === 'unproven' && connection.open) connection.onProven()
    if (this.#ranks.caller.size <= this.#mostCallers) return
    this.#onCut('full')
    const leaving = this.#nextCallerToClose()
    if (leaving) this.#close(leaving)
  }

  /**
   * The node's connections keep their rank: a token sent there proves nothing against the socket's
   * owner.
   */
  #disproven(connection: Connection): void {
    if (connection.rank !== 'caller') return
    this.#move(connection, 'unproven', connection.network)
    connection.onDisproven()
    if (this.#ranks.unproven.size <= this.#mostUnproven) return
    this.#onCut('full')
    const leaving = this.#nextToClose()
    if (leaving) this.#close(leaving)
  }

  #move(connection: Connection, rank: ConnectionRank, owner: string): void {
    const { rank: before, headAllowance } = connection
    this.#ranks[before].remove(connection)
    this.#memory.remove(connection)
    if (before === 'unproven') connection.bytes -= headAllowance
    if (rank === 'unproven') connection.bytes += headAllowance
    connection.rank = rank
    connection.owner = owner
    this.#ranks[rank].add(connection)
    this.#memory.add(connection)
  }

  /**
   * Resolves when all requests in flight are long-running, and every connection has carried a
   * request. May be called once no more connections are accepted.
   */
  async onlyLongRunning(): Promise<void> {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onChange = resolve
      const all = [...this.#all.values()]
      if (all.every(({ used, underWay, longRunning }) => used && underWay === longRunning)) return
      await promise
    }
  }

  /** Closes the connections that have not carried a request. */
  closeUnused(): void {
    for (const { used, socket } of this.#all.values()) if (!used) socket.destroy()
  }

  /** `undefined` once closed. */
  #of(socket: Socket): Connection | undefined {
    const known = this.#bySocket.get(socket)
    if (known) return known.open ? known : undefined
    const found = this.#all.get(nameOf(socket))
    if (found) this.#bySocket.set(socket, found)
    return found
  }

  #addBytes(connection: Connection, bytes: number): void {
    if (!connection.open) return
    connection.bytes += bytes
    this.#ranks[connection.rank].addBytes(connection.owner, bytes)
    this.#memory.addBytes(connection, bytes)
  }

  #close(connection: Connection): void {
    this.#remove(connection)
    connection.socket.destroy()
  }

  #remove(connection: Connection): void {
    if (!connection.open) return
    this.#ranks[connection.rank].remove(connection)
    this.#memory.remove(connection)
    connection.open = false
    this.#all.delete(connection.name)
    this.#onChange()
  }
}

/** A client error other than 429: the hub and API servers send it to callers that they refuse. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 429

/** A connection and the TLS socket over it have the same addresses and ports. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

const idleForLongest = (members: Iterable<Connection>): Connection | undefined => {
  const idle = [...members].filter(({ underWay }) => underWay === 0)
  return maxBy(idle, ({ since }) => -since)
}

/**
 * All loopback addresses count as one network, as a program of this host may use any of them. So do
 * the addresses of an IPv6 /64.
 */
function networkOf({ remoteAddress = '' }: Socket): string {
  if (isLoopback(remoteAddress)) return 'loopback'
  if (!isIPv6(remoteAddress) || remoteAddress.includes('.')) return remoteAddress
  return ipv6Bytes(remoteAddress).toString('hex', 0, 8)
}
