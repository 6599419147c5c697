import { Connection } from './connection.ts'
import { Failures } from './failures.ts'
import type { Target } from './target.ts'

/** So many are opened at a time: a kubelet's pods do not all start in one moment either. */
const atATime = 32

/** Watches that stay open, each on a connection of its own, as a client of HTTP/1.1 has to. */
export class OpenWatches {
  readonly #connections: Connection[] = []
  /** Why watches ended, each counted, until `leave`; and what else is noted. */
  readonly failures = new Failures()
  #left = false

  /**
   * Opens one for each request, told to `onBody` with its place; resolves when each has its head.
   */
  async open(
    target: Target,
    requests: readonly string[],
    onBody: (bytes: Buffer, at: number) => void,
  ): Promise<void> {
    let next = 0
    const opener = async (): Promise<void> => {
      for (let at = next++; at < requests.length; at = next++) {
        const connection = await Connection.to(target)
        this.#connections.push(connection)
        await this.#begin(connection, requests[at] ?? '', (bytes) => onBody(bytes, at))
      }
    }
    await Promise.all(Array.from({ length: atATime }, opener))
  }

  /** Resolves with the head. */
  #begin(connection: Connection, request: string, onBody: (bytes: Buffer) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    connection
      .ask(request, {
        onHead: (status) =>
          status === 200 ? resolve() : reject(new Error(`watch: status ${status}`)),
        onBody,
        mayBeSilent: true,
      })
      .then(
        () => this.#ended('a watch ended'),
        (error: Error) => {
          this.#ended(error.message)
          reject(error)
        },
      )
    return promise
  }

  #ended(why: string): void {
    if (!this.#left) this.failures.add(why)
  }

  leave(): void {
    this.#left = true
    for (const connection of this.#connections) connection.close()
  }
}
