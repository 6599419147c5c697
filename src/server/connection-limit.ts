import type { Server, Socket } from 'node:net'
import { isLoopback } from '../request/own-host.ts'

/** Why a connection was closed that its client had left open. */
export type Cut = 'full' | 'stalled' | 'pipelined'

export type OnCut = (why: Cut) => void

/** A request under way on a connection, until disposed. */
export interface Activity extends Disposable {
  /** Marks the answer as one that lasts: `atRest` does not wait for its end. */
  lasts(): void
}

interface Connection {
  readonly name: string
  readonly socket: Socket
  /** Where it stands; `undefined` once it has been closed. */
  among: Map<string, Connection> | undefined
  underWay: number
  /** How many of these last. */
  lasting: number
}

/**
 * Keeps at most so many connections of one listener open. When one more comes, one is closed: the oldest that has sent no request yet, else
 * the one that has been idle for longest. Where all are being served, the latest of the address that has most of them is closed, so that no
 * address can keep all others out; or the new one, if its own address has as many.
 */
export class ConnectionLimit {
  readonly #most: number
  readonly #onCut: OnCut
  /** Connections that have sent no request yet, those between two requests, and those with one under way; the longest so first. */
  readonly #unused = new Map<string, Connection>()
  readonly #idle = new Map<string, Connection>()
  readonly #served = new Map<string, Connection>()
  /** By the socket that requests come from. */
  readonly #known = new WeakMap<Socket, Connection>()
  #onChange: () => void = () => undefined

  constructor(server: Server, most: number, onCut: OnCut) {
    this.#most = most
    this.#onCut = onCut
    server.on('connection', (socket: Socket) => this.#enter(socket))
  }

  #enter(socket: Socket): void {
    const open = this.#unused.size + this.#idle.size + this.#served.size
    if (open >= this.#most) {
      this.#onCut('full')
      const [leaving] = [
        ...first(this.#unused),
        ...first(this.#idle),
        ...latestOfMost(this.#served, socket),
      ]
      if (!leaving) return void socket.destroy()
      this.#move(leaving[1], undefined)
      leaving[1].socket.destroy()
    }
    const name = nameOf(socket)
    const entering = { name, socket, among: this.#unused, underWay: 0, lasting: 0 }
    this.#unused.set(name, entering)
    socket.once('close', () => this.#move(entering, undefined))
  }

  /** To be called when a request begins, with the connection or the TLS socket inside it: until disposed it is not idle. */
  serving(socket: Socket): Activity {
    const connection = this.#of(socket)
    if (connection?.underWay === 0) this.#move(connection, this.#served)
    if (connection) connection.underWay++
    let over = false
    let lasting = 0
    return {
      lasts: () => {
        if (over || !connection) return
        connection.lasting += 1 - lasting
        lasting = 1
        this.#onChange()
      },
      [Symbol.dispose]: () => {
        if (over || !connection) return
        over = true
        connection.lasting -= lasting
        connection.underWay--
        if (connection.underWay === 0 && connection.among) this.#move(connection, this.#idle)
        else this.#onChange()
      },
    }
  }

  /** Resolves when only answers that last are under way, and no connection is without a request yet. To be called once no more are accepted. */
  async atRest(): Promise<void> {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onChange = resolve
      const served = [...this.#served.values()]
      if (
        this.#unused.size === 0 &&
        served.every((connection) => connection.underWay === connection.lasting)
      )
        return
      await promise
    }
  }

  /** Closes the connections that have sent no request yet. */
  closeUnused(): void {
    for (const { socket } of this.#unused.values()) socket.destroy()
  }

  /** `undefined` once it has been closed. */
  #of(socket: Socket): Connection | undefined {
    const known = this.#known.get(socket)
    if (known) return known.among && known
    const name = nameOf(socket)
    const found = this.#served.get(name) ?? this.#idle.get(name) ?? this.#unused.get(name)
    if (found) this.#known.set(socket, found)
    return found
  }

  #move(connection: Connection, to: Map<string, Connection> | undefined): void {
    connection.among?.delete(connection.name)
    connection.among = to
    to?.set(connection.name, connection)
    this.#onChange()
  }
}

/** A connection and the TLS socket inside it are known by their common remote end. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

function first<K, V>(map: ReadonlyMap<K, V>): [K, V][] {
  for (const entry of map) return [entry]
  return []
}

/** The latest served connection of the address that has most of them; none where the newcomer's own address would then have most. */
function latestOfMost(
  served: ReadonlyMap<string, Connection>,
  newcomer: Socket,
): [string, Connection][] {
  const byAddress = new Map<string, [string, Connection][]>()
  for (const entry of served) {
    const address = endOf(entry[1].socket)
    const known = byAddress.get(address)
    if (known) known.push(entry)
    else byAddress.set(address, [entry])
  }
  const own = byAddress.get(endOf(newcomer))?.length ?? 0
  const [most = []] = [...byAddress.values()].sort((a, b) => b.length - a.length)
  return most.length > own + 1 ? most.slice(-1) : []
}

/** All loopback addresses count as one: a program of this host may call from any of them. */
const endOf = ({ remoteAddress = '' }: Socket): string =>
  isLoopback(remoteAddress) ? 'loopback' : remoteAddress
