import { joined, lengthOf } from '../../base/bytes.ts'
import { bodyOf, Chunks, sourceOf } from '../../http/exchange/chunks.ts'
import type { BytesReply, Exchange, UpstreamReply } from '../../http/exchange/exchange.ts'
import { inflated, withLength, type OnUnpacked } from '../../http/exchange/unpacked.ts'

/**
 * The body of an answer as it arrives. What was read is kept until `stopKeeping`, so that an answer
 * that is not recorded can be replayed.
 */
export class ReplayableBody {
  /** Throws a `BrokenStream` where it breaks off. */
  readonly chunks: AsyncGenerator<readonly Uint8Array[]>
  readonly #reply: UpstreamReply
  readonly #source: Chunks
  readonly #rest: AsyncGenerator<readonly Uint8Array[]>
  #seen: (readonly Uint8Array[])[] = []
  #keeps = true

  constructor(reply: UpstreamReply) {
    this.#reply = reply
    this.#source = new Chunks(bodyOf(reply))
    this.#rest = this.#source[Symbol.asyncIterator]()
    this.chunks = this.#noting()
  }

  async *#noting(): AsyncGenerator<readonly Uint8Array[]> {
    for await (const group of this.#rest) {
      if (this.#keeps) this.#seen.push(group)
      yield group
    }
  }

  /** The beginning of the body: as much as `isEnough`, or all of it. */
  async prefix(isEnough: (bytes: Buffer) => boolean): Promise<Buffer> {
    let start = joined([])
    while (!isEnough(start)) {
      const next = await this.chunks.next()
      if (next.done === true) break
      start = joined(start.length === 0 ? next.value : [start, ...next.value])
    }
    return start
  }

  /** The body; `undefined` where it is longer than `most` bytes: then it can only be replayed. */
  async whole(most: number): Promise<Buffer | undefined> {
    const present = this.#source.takeWhole()
    if (present) {
      this.#seen.push(present)
      return lengthOf(present) > most ? undefined : joined(present)
    }
    let bytes = 0
    for (let next = await this.chunks.next(); next.done !== true; next = await this.chunks.next()) {
      bytes += lengthOf(next.value)
      if (bytes > most) return undefined
    }
    return joined(this.#seen.flat())
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

  /** The answer with its body from the beginning; nothing is read here any more. */
  replay(): BytesReply {
    return {
      ...this.#reply,
      kind: 'bytes',
      source: sourceOf(replayed(this.#seen.flat(), this.#rest)),
    }
  }
}

async function* replayed(
  seen: readonly Uint8Array[],
  rest: AsyncGenerator<readonly Uint8Array[]>,
): AsyncGenerator<readonly Uint8Array[]> {
  if (seen.length > 0) yield seen
  yield* rest
}

/**
 * The answer without its compression and with its body whole, of kind 'body'; one that is longer
 * than `most` bytes has its body yet to come. A promise only where there is something to wait for;
 * it rejects with a `BrokenStream`.
 */
export function wholeReply(
  unread: UpstreamReply,
  exchange: Pick<Exchange, 'follower'>,
  most: number,
  onUnpacked: OnUnpacked,
): UpstreamReply | Promise<UpstreamReply> {
  // To inflate it is to read it, and what returns here is read by others.
  if (Number(unread.headers.get('content-length') ?? 0) > most) return unread
  const plain = inflated(unread, exchange, onUnpacked)
  if (plain.kind === 'body') return plain
  const replayable = new ReplayableBody(plain)
  return replayable.whole(most).then((body) => {
    if (body === undefined) return replayable.replay()
    const headers = plain === unread ? unread.headers : withLength(plain.headers, body)
    return { ...plain, kind: 'body', headers, body }
  })
}
