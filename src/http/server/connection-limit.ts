import type { Server, Socket } from 'node:net'

/** Why the hub closed a connection that its client had left open. */
export type CutReason = 'full' | 'stalled' | 'pipelined'

export type OnCut = (why: CutReason) => void

/** A request in flight on a connection, until disposed. */
export interface RequestActivity extends Disposable {
  /**
   * Has to be called when the pipeline has authenticated the caller: the connection counts as a
   * proven caller's from then on, or as the node's.
   */
  readonly proven: (isNode: boolean) => void
}

/** The proof of a connection's client: none, a caller with a token, or the node itself. */
type Rank = 'unproven' | 'caller' | 'node'

interface Connection {
  readonly name: string
  readonly socket: Socket
  rank: Rank
  open: boolean
  /** Whether it has carried a request. */
  used: boolean
  underWay: number
  /** The sequence number of when it last became idle, or busy. */
  since: number
  onProven: () => void
}

let sequence = 0

/** The limits of a listener's connections. */
export interface ConnectionBounds {
  readonly most: number
  /** The limit of connections on which no caller is proven; absent: no further limit. */
  readonly mostUnproven?: number
}

/**
 * Limits the open connections of one listener; most of them are kept for callers that are proven. A
 * connection over a limit closes another one: first the oldest unproven one, even in the middle of
 * a request; then the caller's that has been idle for longest, or whose request began last. The
 * node's are last, and only while idle: where all connections are the node's and busy, the new one
 * is closed.
 */
export class ConnectionLimit {
  readonly #most: number
  readonly #mostUnproven: number
  readonly #onCut: OnCut
  readonly #ranks: Readonly<Record<Rank, Set<Connection>>> = {
    unproven: new Set(),
    caller: new Set(),
    node: new Set(),
  }
  readonly #all = new Map<string, Connection>()
  /** By the socket that requests arrive on. */
  readonly #bySocket = new WeakMap<Socket, Connection>()
  #mostAtOnce = 0

  constructor(server: Server, { most, mostUnproven = most }: ConnectionBounds, onCut: OnCut) {
    this.#most = most
    this.#mostUnproven = mostUnproven
    this.#onCut = onCut
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  #accept(socket: Socket): void {
    const name = nameOf(socket)
    // No two connections have the same addresses and ports: the client has reset the former one,
    // and Node has not noticed yet.
    const former = this.#all.get(name)
    if (former) this.#close(former)
    if (this.#all.size >= this.#most || this.#ranks.unproven.size >= this.#mostUnproven) {
      this.#onCut('full')
      const leaving = this.#nextToClose()
      if (!leaving) return void socket.destroy()
      this.#close(leaving)
    }
    const entering: Connection = {
      name,
      socket,
      rank: 'unproven',
      open: true,
      used: false,
      underWay: 0,
      since: sequence++,
      onProven: () => undefined,
    }
    this.#all.set(name, entering)
    this.#mostAtOnce = Math.max(this.#mostAtOnce, this.#all.size)
    this.#ranks.unproven.add(entering)
    socket.once('close', () => this.#remove(entering))
  }

  get open(): number {
    return this.#all.size
  }

  /** The most that were open at a time since the last call. */
  mostOpen(): number {
    const most = this.#mostAtOnce
    this.#mostAtOnce = this.#all.size
    return most
  }

  #nextToClose(): Connection | undefined {
    const [oldest] = this.#ranks.unproven
    const { caller, node } = this.#ranks
    return oldest ?? idleForLongest(caller) ?? latestOf(caller) ?? idleForLongest(node)
  }

  /** Has to be called when a request begins, with the connection or the TLS socket over it. */
  beginRequest(socket: Socket): RequestActivity {
    const connection = this.#of(socket)
    if (connection) {
      connection.used = true
      if (connection.underWay++ === 0) connection.since = sequence++
    }
    return new Activity(connection, this.#proven)
  }

  /** Calls `onProven` each time that a connection leaves the unproven ones. */
  watchProof(socket: Socket, onProven: () => void): void {
    const connection = this.#of(socket)
    if (connection) connection.onProven = onProven
  }

  /** Whether the connection is open and no caller is proven on it. */
  isUnproven(socket: Socket): boolean {
    return this.#of(socket)?.rank === 'unproven'
  }

  readonly #proven = (connection: Connection, isNode: boolean): void => {
    const { rank: before } = connection
    if (before === 'node' || (before === 'caller' && !isNode)) return
    this.#ranks[before].delete(connection)
    connection.rank = isNode ? 'node' : 'caller'
    this.#ranks[connection.rank].add(connection)
    if (before === 'unproven') connection.onProven()
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

  #close(connection: Connection): void {
    this.#remove(connection)
    connection.socket.destroy()
  }

  #remove(connection: Connection): void {
    if (!connection.open) return
    this.#ranks[connection.rank].delete(connection)
    connection.open = false
    this.#all.delete(connection.name)
  }
}

class Activity implements RequestActivity {
  readonly #connection: Connection | undefined
  readonly #onProven: (connection: Connection, isNode: boolean) => void
  #isOver = false

  /** `connection`: absent where it is closed. */
  constructor(
    connection: Connection | undefined,
    onProven: (connection: Connection, isNode: boolean) => void,
  ) {
    this.#connection = connection
    this.#onProven = onProven
  }

  readonly proven = (isNode: boolean): void => {
    if (this.#connection?.open) this.#onProven(this.#connection, isNode)
  };

  [Symbol.dispose](): void {
    if (this.#isOver || !this.#connection) return
    this.#isOver = true
    if (--this.#connection.underWay === 0) this.#connection.since = sequence++
  }
}

/** A connection and the TLS socket over it have the same addresses and ports. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

const latestOf = (members: Iterable<Connection>): Connection | undefined =>
  [...members].toSorted((a, b) => b.since - a.since)[0]

const idleForLongest = (members: Iterable<Connection>): Connection | undefined =>
  [...members].filter(({ underWay }) => underWay === 0).toSorted((a, b) => a.since - b.since)[0]
