import { isIPv6, type Server, type Socket } from 'node:net'
import { ipv6Bytes } from '../../base/ip-bytes.ts'
import { isLoopback } from '../../api/request/host-check.ts'
import { nodeIdentity, type Identity } from '../../api/request/identity.ts'
import { limits } from './limits.ts'

/** Why the hub closed a connection that its client had left open. */
export type CutReason = 'full' | 'stalled' | 'pipelined'

export type OnCut = (why: CutReason) => void

/** A request in flight on a connection, until disposed. */
export interface RequestActivity extends Disposable {
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
  /** Whether a caller has been proven on this connection. */
  readonly onProvenConnection: boolean
}

/** The proof of a connection's client: none, a caller with a token, or the node itself. */
type Rank = 'unproven' | 'caller' | 'node'

interface Connection {
  readonly name: string
  readonly socket: Socket
  /** The network of the client: the connection's owner until a caller is proven. */
  readonly network: string
  rank: Rank
  /** A network while nothing is proven, then an identity. */
  owner: string
  open: boolean
  /** Whether it has carried a request. */
  used: boolean
  underWay: number
  /** The sequence number of when it last became idle, or busy. */
  since: number
  /** Refusals since a caller was last proven. */
  refusals: number
  onProven: () => void
}

/** The limits of a listener's connections. */
export interface ConnectionBounds {
  readonly most: number
  /** The limit of connections on which no caller is proven; absent: no further limit. */
  readonly mostUnproven?: number
}

/**
 * Limits the open connections of one listener; most of them are kept for callers that are proven. A
 * connection over a limit closes another one: first the oldest unproven one, of the address with
 * most of them, even in the middle of a request; then a caller's (see `#nextCallerToClose`). The
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
  #sequence = 0
  #mostAtOnce = 0
  readonly #events: ActivityEvents = {
    proven: (connection, identity) => this.#proven(connection, identity),
    disproven: (connection) => this.#disproven(connection),
    over: (connection) => {
      if (--connection.underWay === 0) connection.since = this.#sequence++
    },
  }

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
    const network = networkOf(socket)
    const entering: Connection = {
      name,
      socket,
      network,
      rank: 'unproven',
      owner: network,
      open: true,
      used: false,
      underWay: 0,
      since: this.#sequence++,
      refusals: 0,
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
    const [oldest] = ofLargestOwner(this.#ranks.unproven)
    return oldest ?? this.#nextCallerToClose() ?? idleForLongest(this.#ranks.node)
  }

  /**
   * The connection to close of the identity with most connections: the one that has been idle for
   * longest, or else the one whose request began last.
   */
  #nextCallerToClose(): Connection | undefined {
    const members = ofLargestOwner(this.#ranks.caller)
    return idleForLongest(members) ?? firstBy(members, ({ since }) => -since)
  }

  /** Has to be called when a request begins, with the connection or the TLS socket over it. */
  beginRequest(socket: Socket): RequestActivity {
    const connection = this.#of(socket)
    if (connection) {
      connection.used = true
      if (connection.underWay++ === 0) connection.since = this.#sequence++
    }
    return new Activity(connection, this.#events)
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

  #proven(connection: Connection, identity: Identity): void {
    connection.refusals = 0
    const { rank: before } = connection
    if (before === 'node' || connection.owner === identity) return
    this.#move(connection, identity === nodeIdentity ? 'node' : 'caller', identity)
    if (before === 'unproven') connection.onProven()
  }

  /**
   * The node's connections keep their rank: a token sent there proves nothing against the socket's
   * owner.
   */
  #disproven(connection: Connection): void {
    if (connection.rank !== 'caller') return
    this.#move(connection, 'unproven', connection.network)
    if (this.#ranks.unproven.size <= this.#mostUnproven) return
    this.#onCut('full')
    const leaving = this.#nextToClose()
    if (leaving) this.#close(leaving)
  }

  #move(connection: Connection, rank: Rank, owner: string): void {
    this.#ranks[connection.rank].delete(connection)
    connection.rank = rank
    connection.owner = owner
    this.#ranks[rank].add(connection)
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

interface ActivityEvents {
  readonly proven: (connection: Connection, identity: Identity) => void
  readonly disproven: (connection: Connection) => void
  readonly over: (connection: Connection) => void
}

class Activity implements RequestActivity {
  readonly #connection: Connection | undefined
  readonly #events: ActivityEvents
  #isOver = false
  #isProven = false

  /** `connection`: absent where it is closed. */
  constructor(connection: Connection | undefined, events: ActivityEvents) {
    this.#connection = connection
    this.#events = events
  }

  get onProvenConnection(): boolean {
    return this.#connection !== undefined && this.#connection.rank !== 'unproven'
  }

  readonly proven = (identity: Identity): void => {
    this.#isProven = true
    if (this.#connection?.open) this.#events.proven(this.#connection, identity)
  }

  readonly disproven = (): void => {
    this.#isProven = false
  }

  answered(status: number): boolean {
    const connection = this.#connection
    if (!connection || this.#isProven || !isRefusal(status)) return false
    if (status === 401 && connection.open) this.#events.disproven(connection)
    connection.refusals++
    return connection.refusals >= limits.refusals
  }

  [Symbol.dispose](): void {
    if (this.#isOver || !this.#connection) return
    this.#isOver = true
    this.#events.over(this.#connection)
  }
}

/** A client error other than 429: the hub and API servers send it to callers that they refuse. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && status !== 429

/** A connection and the TLS socket over it have the same addresses and ports. */
const nameOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

/** The connections of the owner that has most of them, in the order in which it got them. */
function ofLargestOwner(all: Iterable<Connection>): readonly Connection[] {
  const groups = Map.groupBy(all, ({ owner }) => owner).values()
  return firstBy(groups, (group) => -group.length) ?? []
}

const idleForLongest = (members: Iterable<Connection>): Connection | undefined => {
  const idle = [...members].filter(({ underWay }) => underWay === 0)
  return firstBy(idle, ({ since }) => since)
}

/** The first of the least by `order`; `undefined` where `all` is empty. */
const firstBy = <Of>(all: Iterable<Of>, order: (one: Of) => number): Of | undefined =>
  [...all].sort((a, b) => order(a) - order(b))[0]

/**
 * All loopback addresses count as one network, as a program of this host may use any of them. So do
 * the addresses of an IPv6 /64.
 */
function networkOf({ remoteAddress = '' }: Socket): string {
  if (isLoopback(remoteAddress)) return 'loopback'
  if (!isIPv6(remoteAddress) || remoteAddress.includes('.')) return remoteAddress
  return ipv6Bytes(remoteAddress).toString('hex', 0, 8)
}
