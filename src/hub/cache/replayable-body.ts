import { joined, lengthOf } from '../../base/bytes.ts'
import { asBrokenStream, bodyOf, Chunks, sourceOf } from '../../http/exchange/chunks.ts'
import type { BytesReply, UpstreamReply } from '../../http/exchange/exchange.ts'
import { isGzip, unpacked, type OnUnpacked } from '../../http/exchange/unpacked.ts'

/**
 * The bytes held back at the end: the eight bytes of gzip's trailer (RFC 1952 section 2.3.1) and
 * the end of the last block.
 */
const withheldBytes = 64

/**
 * The body of an answer as it arrives: decompressed for its reader, while its own bytes are kept to
 * be passed on. They are kept until `stopKeeping`, so that an answer that is not recorded can be
 * replayed.
 */
export class ReplayableBody {
  /** The decompressed body. Throws a `BrokenStream` where it breaks off. */
  readonly chunks: AsyncGenerator<readonly Uint8Array[]>
  readonly isCompressed: boolean
  readonly #reply: UpstreamReply
  readonly #source: Chunks
  readonly #raw: AsyncGenerator<readonly Uint8Array[]>
  #seen: (readonly Uint8Array[])[] = []
  #keeps = true
  #replayed = false

  constructor(reply: UpstreamReply, onUnpacked: OnUnpacked) {
    this.#reply = reply
    this.#source = new Chunks(bodyOf(reply))
    this.#raw = this.#source[Symbol.asyncIterator]()
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

  /** The beginning of the decompressed body: as much as `isEnough`, or all of it. */
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
   * The decompressed body; `undefined` where it is longer than `most` bytes: then it can only be
   * replayed.
   */
  async whole(most: number): Promise<Buffer | undefined> {
    const present = this.isCompressed ? undefined : this.#source.takeWhole()
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

  /** Has `chunks` yield so many bytes at once, where they have arrived. */
  gather(bytes: number): void {
    this.#source.gatheredBytes = bytes
  }

  /** Drops the kept bytes, and keeps no more. */
  stopKeeping(): void {
    this.#keeps = false
    this.#seen = []
  }

  /** The bytes kept so far, except those taken by `takeBytes`. */
  keptBytes(): readonly Uint8Array[] {
    return this.#seen.flat()
  }

  /** The answer with its own bytes from the beginning; ends the reading here. */
  replay(): BytesReply {
    this.#replayed = true
    void this.chunks.return(undefined)
    return {
      ...this.#reply,
      kind: 'bytes',
      source: sourceOf(replayed(this.keptBytes(), this.#raw)),
    }
  }

  /**
   * The kept bytes, each once, until `stopKeeping`: all but the last few, without which no client
   * takes a compressed body for complete.
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
