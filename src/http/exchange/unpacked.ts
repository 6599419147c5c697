import { createGunzip } from 'node:zlib'
import { joined } from '../../base/bytes.ts'
import { BrokenStream } from './chunks.ts'
import type { HeaderList } from './headers.ts'

/** Told of what was read of compressed bodies, and what it held, as it goes. */
export type OnUnpacked = (packedBytes: number, unpackedBytes: number) => void

/** A compressed body that cannot be read to its end. `cause` says why. */
class CorruptCompression extends BrokenStream {
  override readonly code = 'CORRUPT_COMPRESSION'
  constructor(cause: unknown) {
    super(cause, 'a compressed answer could not be read')
  }
}

export const isGzip = (headers: HeaderList): boolean =>
  headers.get('content-encoding')?.toLowerCase() === 'gzip'

/**
 * The fields of an answer whose body is no longer compressed. Vary stays: others may be answered
 * otherwise.
 */
export const unpackedHeaders = (headers: HeaderList): HeaderList =>
  isGzip(headers)
    ? headers.without((name) => name === 'content-encoding' || name === 'content-length')
    : headers

/** The fields of an answer whose body was made here: not compressed, and as long as it is. */
export const withLength = (headers: HeaderList, body: Uint8Array): HeaderList =>
  unpackedHeaders(headers)
    .without((name) => name === 'content-length')
    .with('Content-Length', String(body.byteLength))

/** How much is read ahead of who takes it. */
export const unpackedBytes = 64 * 1024

/**
 * What a body compressed with gzip holds. Whatever can be read of one group is handed out before
 * the next one is asked for, so that a stream that its sender flushes is as prompt as a plain one.
 * Never more than 64 KB are read ahead of whoever takes them, however much a little may hold.
 * Throws a `CorruptCompression`, and whatever `packed` throws.
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
 * node:zlib's stream, seen as a function of what is put in. It works off the main thread, where the
 * 4 MB of a list of 500 pods take some 10 to 20 ms.
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

  /** Everything that came with `bytes`; without, what is left at the end. */
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
