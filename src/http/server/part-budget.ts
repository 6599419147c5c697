import type { Socket } from 'node:net'
import type { ConnectionLimit } from './connection-limit.ts'
import { limits } from './limits.ts'

/**
 * Detects connections on which request bodies arrive in parts of a few bytes, while no caller is
 * proven on them. Node's parser calls JavaScript for each part, which costs microseconds: 64 KiB of
 * chunks of one byte hold the event loop up for 50 ms, and libuv reads 32 times as much of a
 * connection in one turn. All bodies of a connection count together, as many can be sent at once.
 */
export class PartBudget {
  readonly #connections: ConnectionLimit
  readonly #received = new WeakMap<Socket, { parts: number; bytes: number }>()

  constructor(connections: ConnectionLimit) {
    this.#connections = connections
  }

  /** Has to be called for each part. Returns whether the connection has to be cut. */
  isExceeded(socket: Socket, bytes: number): boolean {
    const received = this.#received.get(socket) ?? { parts: 0, bytes: 0 }
    if (received.parts === 0) this.#received.set(socket, received)
    received.parts++
    received.bytes += Math.min(bytes, limits.bodyPartCredit)
    const { parts, bytes: all } = received
    if (parts < limits.bodyParts || all >= parts * limits.bodyPartBytes) return false
    if (this.#connections.isUnproven(socket)) return true
    this.#received.delete(socket)
    return false
  }
}
