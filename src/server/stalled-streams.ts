import type { ServerHttp2Stream } from 'node:http2'
import { elapsed } from '../base/clock.ts'

/** The slowest client that has not stalled, in bytes a second: clients are on this host. */
const slowest = 128 * 1024

interface Taking {
  taken: boolean
  /** When it was last seen to have nothing waiting, or to have taken something. */
  since: number
}

/**
 * The open streams of one HTTP/2 connection, and which of them have stalled because the client takes nothing. Each is judged by itself: a
 * client that answers pings, or reads one stream, may have abandoned another.
 */
export class StalledStreams {
  readonly #patienceMs: number
  readonly #open = new Map<ServerHttp2Stream, Taking>()

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  get open(): number {
    return this.#open.size
  }

  /** Watches a stream until it closes. The function returned is to be called whenever the client has taken something. */
  add(stream: ServerHttp2Stream): () => void {
    const taking = { taken: false, since: elapsed() }
    this.#open.set(stream, taking)
    stream.once('close', () => this.#open.delete(stream))
    return () => void (taking.taken = true)
  }

  /** The streams that have stalled for `patienceMs`, as far as that shows from one look to the next. */
  look(): ServerHttp2Stream[] {
    const at = elapsed()
    const stalled: ServerHttp2Stream[] = []
    for (const [stream, taking] of this.#open) {
      const waiting = stream.writableLength
      if (waiting === 0 || taking.taken) {
        taking.taken = false
        taking.since = at
      } else if (at - taking.since >= this.#patienceMs + (waiting / slowest) * 1000) {
        stalled.push(stream)
      }
    }
    return stalled
  }
}
