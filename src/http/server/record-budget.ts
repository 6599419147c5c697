import type { TLSSocket } from 'node:tls'
import { every } from '../../base/clock.ts'
import type { ConnectionLimit, OnCut } from './connection-limit.ts'
import { limits } from './limits.ts'

/** How often connections are checked. */
const checkMs = 100

/** The share of overhead that TLS records may have: more than a request's head needs. */
export const overheadShare = 1 / 32

const refill = (limits.recordBytesPerSecond * checkMs) / 1_000

/**
 * Closes TLS connections that receive almost only record overhead, while no caller is proven on
 * them. A KeyUpdate of TLS 1.3 is 27 bytes and costs some 10 microseconds, as does each attempt to
 * renegotiate; OpenSSL accepts as many as are sent, and Node does not see them (Go's crypto/tls
 * closes the connection after 16). A turn of the event loop processes all that has arrived, so a
 * connection is closed after the turn in which it exceeded its budget.
 */
export class RecordBudget implements Disposable {
  readonly #connections: ConnectionLimit
  readonly #onCut: OnCut
  /** By connection, how many bytes of overhead no longer count. */
  readonly #allowances = new Map<TLSSocket, number>()
  #timer: Disposable | undefined

  constructor(connections: ConnectionLimit, onCut: OnCut) {
    this.#connections = connections
    this.#onCut = onCut
  }

  /** Has to be called after the handshake. */
  watch(socket: TLSSocket): void {
    this.#add(socket)
    socket.once('close', () => this.#remove(socket))
    this.#connections.watchDisproof(socket, () => this.#add(socket))
  }

  /** What the connection has received so far does not count. */
  #add(socket: TLSSocket): void {
    this.#allowances.set(socket, this.#overheadBytes(socket) ?? 0)
    this.#timer ??= every(checkMs, () => this.#check())
  }

  [Symbol.dispose](): void {
    this.#allowances.clear()
    this.#stopIfEmpty()
  }

  #check(): void {
    for (const [socket, forgiven] of this.#allowances) {
      const around = this.#overheadBytes(socket)
      if (around === undefined) this.#remove(socket)
      else if (around - forgiven > limits.recordBytes) {
        this.#onCut('records')
        this.#remove(socket)
        socket.destroy()
      } else this.#allowances.set(socket, Math.min(forgiven + refill, around))
    }
  }

  /** `undefined` once a caller is proven, or the connection has closed. */
  #overheadBytes(socket: TLSSocket): number | undefined {
    const raw = this.#connections.unprovenBytes(socket)
    return raw === undefined ? undefined : raw - socket.bytesRead * (1 + overheadShare)
  }

  #remove(socket: TLSSocket): void {
    this.#allowances.delete(socket)
    this.#stopIfEmpty()
  }

  #stopIfEmpty(): void {
    if (this.#allowances.size > 0) return
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }
}
