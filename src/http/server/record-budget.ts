import type { TLSSocket } from 'node:tls'
import { every } from '../../base/clock.ts'
import type { ConnectionLimit, OnCut } from './connection-limit.ts'
import { limits } from './limits.ts'

/** How often connections are looked at. */
const lookMs = 100

/** Of what records carry so large a part may be around it: more than a head of a request needs. */
export const aroundContent = 1 / 4

const refill = (limits.recordBytesPerSecond * lookMs) / 1_000

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
  readonly #forgiven = new Map<TLSSocket, number>()
  #looking: Disposable | undefined

  constructor(connections: ConnectionLimit, onCut: OnCut) {
    this.#connections = connections
    this.#onCut = onCut
  }

  /** To be called when the handshake is over. */
  watch(socket: TLSSocket): void {
    this.#forgiven.set(socket, this.#around(socket) ?? 0)
    socket.once('close', () => this.#leave(socket))
    this.#looking ??= every(lookMs, () => this.#look())
  }

  [Symbol.dispose](): void {
    this.#forgiven.clear()
    this.#rest()
  }

  #look(): void {
    for (const [socket, forgiven] of this.#forgiven) {
      const around = this.#around(socket)
      if (around === undefined) this.#leave(socket)
      else if (around - forgiven > limits.recordBytes) {
        this.#onCut('records')
        this.#leave(socket)
        socket.destroy()
      } else this.#forgiven.set(socket, Math.min(forgiven + refill, around))
    }
  }

  /** `undefined` once a caller is proven, or the connection has closed. */
  #around(socket: TLSSocket): number | undefined {
    const raw = this.#connections.unprovenBytes(socket)
    return raw === undefined ? undefined : raw - socket.bytesRead * (1 + aroundContent)
  }

  #leave(socket: TLSSocket): void {
    this.#forgiven.delete(socket)
    this.#rest()
  }

  #rest(): void {
    if (this.#forgiven.size > 0) return
    this.#looking?.[Symbol.dispose]()
    this.#looking = undefined
  }
}
