import type { TLSSocket } from 'node:tls'
import { every } from '../../base/clock.ts'
import type { ConnectionLimit, OnCut } from './connection-limit.ts'
import { limits } from './limits.ts'

/** How often connections are looked at. */
const checkMs = 100

/**
 * Of what records carry so large a part may be around it: Go's smallest records, with which it
 * begins to send much, need a 54th. With more, KeyUpdates beside a body cost most of the processor.
 */
export const overheadShare = 1 / 32

const refill = (limits.recordBytesPerSecond * checkMs) / 1_000

/**
 * Cuts TLS connections on which next to nothing comes but records, until a caller is proven on
 * them. A KeyUpdate of TLS 1.3 is 27 bytes and costs some 10 microseconds, as does each attempt to
 * renegotiate; OpenSSL takes as many as are sent, and Node hears of none (Go's crypto/tls ends the
 * connection after 16). A turn of the event loop goes through all that has come, so that a
 * connection is cut after the turn in which it spent its budget.
 */
export class RecordBudget implements Disposable {
  readonly #connections: ConnectionLimit
  readonly #onCut: OnCut
  /** Of each connection, how many bytes around content do not count any more. */
  readonly #allowances = new Map<TLSSocket, number>()
  #timer: Disposable | undefined

  constructor(connections: ConnectionLimit, onCut: OnCut) {
    this.#connections = connections
    this.#onCut = onCut
  }

  /** To be called when the handshake is over. */
  watch(socket: TLSSocket): void {
    this.#allowances.set(socket, this.#overheadBytes(socket) ?? 0)
    socket.once('close', () => this.#remove(socket))
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
