import { joined, lengthOf } from '../../base/bytes.ts'
import { asBrokenStream, Chunks, sourceOf } from '../../http/exchange/chunks.ts'
import type { BytesReply } from '../../http/exchange/exchange.ts'
import { isGzip, unpacked, type OnUnpacked } from '../../http/exchange/unpacked.ts'

/**
 * How much is kept back at the end: the eight bytes of gzip's trailer (RFC 1952 section 2.3.1) and
 * the end of the last block.
 */
const withheldBytes = 64

/**
 * An answer as it arrives: read for what it says, compressed or not, while its own bytes are kept
 * for whoever passes them on. They are kept until `letGo`, so that an answer that turns out to be
 * nothing to record can be replayed.
 */
export class ReplayableBody {
  /**
   * What the body says, inflated where it came compressed. Throws a `BrokenStream` where it breaks
   * off.
   */
  readonly chunks: AsyncGenerator<readonly Uint8Array[]>
  readonly isCompressed: boolean
  readonly #reply: BytesReply
  readonly #arrived: Chunks
  readonly #raw: AsyncGenerator<readonly Uint8Array[]>
  #seen: (readonly Uint8Array[])[] = []
  #keeps = true
  #replayed = false

  constructor(reply: BytesReply, onUnpacked: OnUnpacked) {
    this.#reply = reply
    this.#arrived = new Chunks(reply.source)
    this.#raw = this.#arrived[Symbol.asyncIterator]()
    this.isCompressed = isGzip(reply.headers)
    this.chunks = this.isCompressed ? unpacked(this.#noting(), onUnpacked) : this.#noting()
  }

  async *#noting(): AsyncGenerator<readonly Uint8Array[]> {
    try {
      for (;;) {
        const next = await this.#raw.next().catch((cause: unknown) => {
          throw asBrokenStream(cause)
        })
        if (next.done === true) return
        if (this.#keeps) this.#seen.push(next.value)
        yield next.value
      }
    } finally {
      if (!this.#replayed) await this.#raw.return(undefined)
    }
  }

  /** The first of what the body says: as much as `isEnough`, or all of it. */
  async prefix(isEnough: (bytes: Buffer) => boolean): Promise<Uint8Array[]> {
    const parts: Uint8Array[] = []
    while (!isEnough(joined(parts))) {
      const next = await this.chunks.next()
      if (next.done === true) break
      parts.push(...next.value)
    }
    return parts
  }

  /**
   * All that the body says; `undefined` where that is more than `most` bytes, from when on it can
   * only be replayed.
   */
  async whole(most: number): Promise<Buffer | undefined> {
    const present = this.isCompressed ? undefined : this.#arrived.takeWhole()
    if (present) {
      if (this.#keeps) this.#seen.push(present)
      return lengthOf(present) > most ? undefined : joined(present)
    }
    const parts: Uint8Array[] = []
    let bytes = 0
    for (let next = await this.chunks.next(); next.done !== true; next = await this.chunks.next()) {
      parts.push(...next.value)
      bytes += lengthOf(next.value)
      if (bytes > most) return undefined
    }
    return joined(parts)
  }

  /** Neither the bytes that came so far nor those to come are going to be asked for. */
  stopKeeping(): void {
    this.#keeps = false
    this.#seen = []
  }

  /** The bytes that came so far, as they came, but for those that were `taken`. */
  keptBytes(): readonly Uint8Array[] {
    return this.#seen.flat()
  }

  /** The answer as it would have been, in the bytes it came in; it is read no more here. */
  replay(): BytesReply {
    this.#replayed = true
    void this.chunks.return(undefined)
    return { ...this.#reply, source: sourceOf(replayed(this.keptBytes(), this.#raw)) }
  }

  /**
   * The bytes as they came, each once, until `letGo`: all but the last few, without which nobody
   * takes a compressed body for whole.
   */
  takeBytes(): readonly Uint8Array[] {
    const bytes = joined(this.keptBytes())
    const end = Math.max(0, bytes.byteLength - withheldBytes)
    this.#seen = [[bytes.subarray(end)]]
    return end === 0 ? [] : [bytes.subarray(0, end)]
  }
}

async function* replayed(
  seen: readonly Uint8Array[],
  rest: AsyncGenerator<readonly Uint8Array[]>,
): AsyncGenerator<readonly Uint8Array[]> {
  if (seen.length > 0) yield seen
  yield* rest
}
