import type { ServerHttp2Stream } from 'node:http2'
import { elapsed } from '../base/clock.ts'

/** Bytes a second that a client takes at the least of what is written at once: one on this host that takes less has stopped. */
const slowest = 128 * 1024

interface Taking {
  taken: boolean
  /** When it was last seen to have nothing waiting, or to have taken something. */
  since: number
}

/**
 * The open streams of one HTTP/2 connection, and which of them wait for a client that takes nothing. Each is judged by itself: a client
 * that answers pings, or reads one stream, may have left another.
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

  /** Keeps account of a stream until it closes. What is returned is to be called whenever something written has been taken. */
  add(stream: ServerHttp2Stream): () => void {
    const taking = { taken: false, since: elapsed() }
    this.#open.set(stream, taking)
    stream.once('close', () => this.#open.delete(stream))
    return () => void (taking.taken = true)
  }

  /** Those that have stalled for the time given, as far as that can be told from one look to the next. */
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
