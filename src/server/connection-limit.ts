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
  readonly socket: Socket
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
      this.#leave(leaving[0])
      leaving[1].socket.destroy()
    }
    const name = nameOf(socket)
    this.#unused.set(name, { socket, underWay: 0, lasting: 0 })
    socket.once('close', () => this.#leave(name))
  }

  #leave(name: string): void {
    for (const connections of [this.#unused, this.#idle, this.#served]) connections.delete(name)
    this.#onChange()
  }

  /** To be called when a request begins, with the connection or the TLS socket inside it: until disposed it is not idle. */
  serving(socket: Socket): Activity {
    const name = nameOf(socket)
    const connection = this.#served.get(name) ?? this.#idle.get(name) ?? this.#unused.get(name)
    if (connection?.underWay === 0) this.#move(name, connection, this.#served)
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
        if (--connection.underWay === 0 && this.#served.has(name))
          this.#move(name, connection, this.#idle)
        this.#onChange()
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

  #move(name: string, connection: Connection, to: Map<string, Connection>): void {
    this.#leave(name)
    to.set(name, connection)
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
