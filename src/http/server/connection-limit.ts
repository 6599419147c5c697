import { isIPv6, type Server, type Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { isLoopback } from '../../api/request/host-check.ts'
import { nodeIdentity, type Identity } from '../../api/request/identity.ts'
import type { ConnectionMemory, AccountedConnection } from './connection-memory.ts'
import { limits } from './limits.ts'
import { maxBy, ConnectionRanks, type ConnectionRank } from './ranks.ts'

/** Why a connection was closed that its client had left open. */
export type CutReason = 'full' | 'memory' | 'stalled' | 'pipelined' | 'records'

export type OnCut = (why: CutReason) => void

/** A request under way on a connection, until disposed. */
export interface RequestActivity extends Disposable {
  /** Marks the answer as one that lasts: `atRest` does not wait for its end. */
  markLongRunning(): void
  /**
   * To be called when the pipeline has found out who asks: what the caller has proved counts for
   * its connection from then on. Of several callers on one connection the last one counts, the node
   * before all: a token's holder may turn out to be a service account later.
   */
  readonly proven: (identity: Identity) => void
  /** To be called when that proof is taken back before the answer. */
  readonly disproven: () => void
  /**
   * To be called with the code of the answer. A 401 to a caller that is not proven puts the
   * connection back among the unproven, unless it is the node's. Whether this was one refusal too
   * many in a row: the connection is to end with it.
   */
  answered(status: number): boolean
  /** To be called with what waits on the stream of the request now, in either direction. */
  setWaitingBytes(bytes: number): void
  /** Whether anything asked on this connection has proved who is at its other end. */
  readonly onProvenConnection: boolean
}

interface Connection extends AccountedConnection {
  readonly name: string
  readonly socket: Socket
  /** Where it comes from: its owner until a caller is proven on it. */
  readonly network: string
  rank: ConnectionRank
  owner: string
  bytes: number
  /**
   * What a head that is being read may hold: counted in `bytes` while the caller is not proven, as
   * nothing shows it.
   */
  headAllowance: number
  open: boolean
  /** Whether a request has come. */
  used: boolean
  underWay: number
  /** How many of these last. */
  longRunning: number
  /** Counts up over all connections: when it began to be idle, or to be served. */
  since: number
  /** Refusals since something was last proved. */
  refusals: number
  onProven: () => void
}

/** How many connections a listener keeps open. */
export interface ConnectionBounds {
  readonly most: number
  /** On which no caller is proven; absent: all of them may be. */
  readonly mostUnproven?: number
}

/** The part of the connections that is never other callers' than the node's. */
export const reservedShare = 1 / 8

/**
 * Keeps at most so many connections of one listener open. When one more comes, one is closed: first
 * one on which no caller was ever proven, served or not, the oldest of the address that has most of
 * them; then one of the callers' (see `#spare`). The node's go last, and only while idle: where the
 * node has all of them served, the new one is closed. Callers have no more than seven eighths, so
 * that the node always finds room.
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
  /** By the socket that requests come from. */
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
    // No two connections have the same ends: the client has reset that one, which Node has not
    // heard of yet.
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
   * Of the identity that has most connections the one that has been idle for longest, else the one
   * whose request came last.
   */
  #nextCallerToClose(): Connection | undefined {
    const members = this.#ranks.caller.withMostConnections()?.members ?? []
    return idleForLongest(members) ?? maxBy(members, ({ since }) => since)
  }

  /**
   * To be called when a request begins, with the connection or the TLS socket inside it, and with
   * what its head holds.
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
   * To be called when a connection turns out to speak HTTP/2. Calls `onProven` each time that it
   * leaves the unproven.
   */
  markHttp2(socket: Socket, onProven: () => void): void {
    const connection = this.#of(socket)
    if (!connection) return
    connection.onProven = onProven
    connection.headAllowance += limits.http2HeadBytes
    this.#addBytes(connection, limits.http2HeadBytes)
  }

  /**
   * The bytes that have come on a connection, those of TLS itself included; `undefined` once a
   * caller is proven on it, or it has been closed.
   */
  unprovenBytes(socket: Socket): number | undefined {
    const connection = this.#of(socket)
    return connection?.rank === 'unproven' ? connection.socket.bytesRead : undefined
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

  /** The node's connections stay: a token shown there says nothing against its socket. */
  #disproven(connection: Connection): void {
    if (connection.rank === 'caller') this.#move(connection, 'unproven', connection.network)
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
   * Resolves when only answers that last are under way, and no connection is without a request yet.
   * To be called once no more are accepted.
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

  /** Closes the connections that have sent no request yet. */
  closeUnused(): void {
    for (const { used, socket } of this.#all.values()) if (!used) socket.destroy()
  }

  /** `undefined` once it has been closed. */
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

/**
 * A client error other than "try again later": the hub and API servers give it to those they do not
 * serve.
 */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 429

/** A connection and the TLS socket inside it are known by their common ends. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

const idleForLongest = (members: Iterable<Connection>): Connection | undefined => {
  const idle = [...members].filter(({ underWay }) => underWay === 0)
  return maxBy(idle, ({ since }) => -since)
}

/**
 * All loopback addresses count as one: a program of this host may call from any of them. So do
 * those of an IPv6 network of 64 bits.
 */
function networkOf({ remoteAddress = '' }: Socket): string {
  if (isLoopback(remoteAddress)) return 'loopback'
  if (!isIPv6(remoteAddress) || remoteAddress.includes('.')) return remoteAddress
  const [head = '', tail] = remoteAddress.split('::')
  const [left, right] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':')))
  const zeros = Array<string>(Math.max(0, 8 - (left?.length ?? 0) - (right?.length ?? 0))).fill('0')
  return [...(left ?? []), ...zeros, ...(right ?? [])].slice(0, 4).join(':')
}
