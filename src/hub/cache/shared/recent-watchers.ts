import { elapsed } from '../../../base/clock.ts'

interface ClientWatches {
  open: number
  /** When its last watch ended, by the monotonic clock. */
  at: number
}

/**
 * Clients choose their own names: beyond so many, each new one removes those without a recent
 * watch.
 */
const mostClients = 256

/**
 * Which clients watch a collection, here or by upstream watches of their own, and which did so
 * lately.
 */
export class RecentWatchers {
  readonly #rememberedMs: number
  readonly #clients = new Map<string, ClientWatches>()

  constructor(rememberedMs: number) {
    this.#rememberedMs = rememberedMs
  }

  /** Counts a watch of `client` until disposed. */
  join(client: string): Disposable {
    if (this.#clients.size >= mostClients) this.hasOthers(client)
    const watches = this.#clients.get(client) ?? { open: 0, at: 0 }
    watches.open += 1
    this.#clients.set(client, watches)
    let open = true
    return {
      [Symbol.dispose]: () => {
        if (!open) return
        open = false
        watches.open -= 1
        watches.at = elapsed()
      },
    }
  }

  /** Whether a client other than `client` watches the collection, or did so lately. */
  hasOthers(client: string): boolean {
    let others = false
    for (const [each, { open, at }] of this.#clients) {
      if (open > 0 || elapsed() - at < this.#rememberedMs) others ||= each !== client
      else this.#clients.delete(each)
    }
    return others
  }
}
