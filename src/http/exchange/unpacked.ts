import { createGunzip } from 'node:zlib'
import { joined } from '../../base/bytes.ts'
import { bodyOf, BrokenStream, Chunks, sourceOf } from './chunks.ts'
import type { Exchange, UpstreamReply } from './exchange.ts'
import type { HeaderList } from './headers.ts'

/** Called with the bytes read from compressed bodies, and the bytes that they contain. */
export type OnUnpacked = (packedBytes: number, unpackedBytes: number) => void

/** A compressed body that cannot be decompressed to its end, with the cause. */
class CorruptCompression extends BrokenStream {
  override readonly code = 'CORRUPT_COMPRESSION'
  constructor(cause: unknown) {
    super(cause, 'a compressed answer could not be read')
  }
}

const isGzip = (headers: HeaderList): boolean =>
  headers.get('content-encoding')?.toLowerCase() === 'gzip'

/** Whether `inflated` gives the body itself. */
export const isReadable = (headers: HeaderList): boolean =>
  headers.get('content-encoding') === undefined || isGzip(headers)

/**
 * The answer without its compression, as the hub reads it. Its `follower` learns the real size. A
 * 204 or 304 has no body, even if its headers name an encoding.
 */
export const inflated = (
  reply: UpstreamReply,
  { follower }: Pick<Exchange, 'follower'>,
  onUnpacked: OnUnpacked,
): UpstreamReply =>
  isGzip(reply.headers) && reply.status !== 204 && reply.status !== 304
    ? {
        ...reply,
        kind: 'bytes',
        // Vary stays: other clients may get another coding.
        headers: reply.headers.without(
          (name) => name === 'content-encoding' || name === 'content-length',
        ),
        source: sourceOf(
          unpacked(new Chunks(bodyOf(reply)), (packedBytes, unpackedBytes) => {
            onUnpacked(packedBytes, unpackedBytes)
            follower?.received(unpackedBytes - packedBytes)
          }),
        ),
      }
    : reply

/** The fields of an answer with this body. */
export const withLength = (headers: HeaderList, body: Uint8Array): HeaderList =>
  headers
    .without((name) => name === 'content-length')
    .with('Content-Length', String(body.byteLength))

/** How many bytes are decompressed at once. */
const unpackedBytes = 64 * 1024

/**
 * Decompresses a gzip body. Yields all that one group contains before it reads the next one, so
 * that a stream that its sender flushes arrives as promptly as an uncompressed one. Decompresses at
 * most 64 KB ahead of the reader, however much a few bytes may contain. Throws a
 * `CorruptCompression`, and whatever `packed` throws.
 */
export async function* unpacked(
  packed: AsyncIterable<readonly Uint8Array[]>,
  onUnpacked: OnUnpacked,
): AsyncGenerator<readonly Uint8Array[]> {
  using gunzip = new Gunzip()
  for await (const group of packed) {
    const bytes = joined(group)
    onUnpacked(bytes.byteLength, 0)
    for await (const part of gunzip.read(bytes)) {
      onUnpacked(0, part.byteLength)
      yield [part]
    }
  }
  for await (const part of gunzip.read()) {
    onUnpacked(0, part.byteLength)
    yield [part]
  }
}

/**
 * node:zlib's stream as a function of its input. It works off the main thread, where the 4 MB of a
 * list of 500 pods take 10 to 20 ms.
 */
class Gunzip implements Disposable {
  readonly #stream = createGunzip({ chunkSize: unpackedBytes, rejectGarbageAfterEnd: true })
  #failure: unknown
  #wake: () => void = () => undefined

  constructor() {
    this.#stream.on('readable', () => this.#wake())
    this.#stream.on('error', (cause) => this.#fail(cause))
  }

  #fail(cause: unknown): void {
    this.#failure ??= cause
    this.#wake()
  }

  /** All output for `bytes`; without argument, the rest of the output at the end. */
  async *read(bytes?: Uint8Array): AsyncGenerator<Buffer> {
    let over = false
    const end = (cause?: Error | null): void => {
      over = true
      if (cause) this.#fail(cause)
      else this.#wake()
    }
    if (bytes) this.#stream.write(bytes, end)
    else this.#stream.once('end', end).end()
    for (;;) {
      const part = this.#stream.read() as Buffer | null
      if (part !== null) yield part
      else if (this.#failure !== undefined) throw new CorruptCompression(this.#failure)
      else if (over) return
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }

  [Symbol.dispose](): void {
    this.#stream.destroy()
  }
}
