import type { Server, Socket } from 'node:net'
import { isLoopback } from '../request/own-host.ts'

/** Why a connection was closed that its client had left open. */
export type Cut = 'full' | 'stalled' | 'pipelined'

export type OnCut = (why: Cut) => void

/** Something under way on a connection, until disposed. */
export interface Business extends Disposable {
  /** It may last, and nobody waits for its end who waits until a crowd is at rest. */
  lasts(): void
}

interface Guest {
  readonly socket: Socket
  underWay: number
  /** Of these, those that last. */
  lasting: number
}

/**
 * The connections of one listener, of which there are at most so many. When there is no room the one makes it that has been of no use for
 * longest: of those that never asked for anything the oldest, else that which has been idle for longest. Where all are being served it is
 * the latest of the address that has most of them, so that no other end can keep all others out; and the new one itself, if its own
 * address has as many.
 */
export class Crowd {
  readonly #most: number
  readonly #onCut: OnCut
  /** Those that have asked for nothing yet, and those that wait for their next request; longest waiting first. */
  readonly #strangers = new Map<string, Guest>()
  readonly #idle = new Map<string, Guest>()
  readonly #served = new Map<string, Guest>()
  #onChange: () => void = () => undefined

  constructor(server: Server, most: number, onCut: OnCut) {
    this.#most = most
    this.#onCut = onCut
    server.on('connection', (socket: Socket) => this.#enter(socket))
  }

  #enter(socket: Socket): void {
    const all = this.#strangers.size + this.#idle.size + this.#served.size
    if (all >= this.#most) {
      this.#onCut('full')
      const [leaving] = [
        ...first(this.#strangers),
        ...first(this.#idle),
        ...latestOfMost(this.#served, socket),
      ]
      if (!leaving) return void socket.destroy()
      this.#leave(leaving[0])
      leaving[1].socket.destroy()
    }
    const name = nameOf(socket)
    this.#strangers.set(name, { socket, underWay: 0, lasting: 0 })
    socket.once('close', () => this.#leave(name))
  }

  #leave(name: string): void {
    for (const guests of [this.#strangers, this.#idle, this.#served]) guests.delete(name)
    this.#onChange()
  }

  /** Something is under way on a connection, or on the TLS inside it, until disposed: it makes room for nobody. */
  serving(socket: Socket): Business {
    const name = nameOf(socket)
    const guest = this.#served.get(name) ?? this.#idle.get(name) ?? this.#strangers.get(name)
    if (guest?.underWay === 0) this.#move(name, guest, this.#served)
    if (guest) guest.underWay++
    let over = false
    let lasting = 0
    return {
      lasts: () => {
        if (over || !guest) return
        guest.lasting += 1 - lasting
        lasting = 1
        this.#onChange()
      },
      [Symbol.dispose]: () => {
        if (over || !guest) return
        over = true
        guest.lasting -= lasting
        if (--guest.underWay === 0 && this.#served.has(name)) this.#move(name, guest, this.#idle)
        this.#onChange()
      },
    }
  }

  /** Resolves when nothing is under way but what lasts, and nobody is still to ask for the first time. To be called once nobody enters. */
  async atRest(): Promise<void> {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#onChange = resolve
      const served = [...this.#served.values()]
      if (this.#strangers.size === 0 && served.every((guest) => guest.underWay === guest.lasting))
        return
      await promise
    }
  }

  /** Closes the connections that have asked for nothing yet. */
  dismissStrangers(): void {
    for (const { socket } of this.#strangers.values()) socket.destroy()
  }

  #move(name: string, guest: Guest, to: Map<string, Guest>): void {
    this.#leave(name)
    to.set(name, guest)
  }
}

/** A connection and the TLS inside it are two sockets with one other end. */
const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

function first<K, V>(map: ReadonlyMap<K, V>): [K, V][] {
  for (const entry of map) return [entry]
  return []
}

/** Of the address with most connections the one that came to be served last; none where `newcomer`'s own would then have most. */
function latestOfMost(served: ReadonlyMap<string, Guest>, newcomer: Socket): [string, Guest][] {
  const byAddress = new Map<string, [string, Guest][]>()
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

/** Programs of this host are one end: they may call from any of its loopback's addresses. */
const endOf = ({ remoteAddress = '' }: Socket): string =>
  isLoopback(remoteAddress) ? 'loopback' : remoteAddress
