/** The bytes of `parts` in one buffer; a single part is returned uncopied. */
export function joined(parts: readonly Uint8Array[]): Buffer {
  const [only] = parts
  if (parts.length === 1 && only) return asBuffer(only)
  return Buffer.concat(parts)
}

/** The same memory as a Buffer. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The same bytes; in memory of their own where the view would pin much more than it shows. */
export function unpinned(bytes: Uint8Array): Buffer {
  const { byteLength } = bytes
  if (byteLength * 2 >= bytes.buffer.byteLength) return asBuffer(bytes)
  const own = Buffer.allocUnsafeSlow(byteLength)
  own.set(bytes)
  return own
}

/** The total length of `parts`. */
export const lengthOf = (parts: readonly Uint8Array[]): number =>
  parts.reduce((sum, part) => sum + part.byteLength, 0)

/**
 * Size of a buffer: less than 64 KiB, from which on malloc gives each buffer pages of its own (see
 * the Dockerfile), as TLS copies what is written once more.
 */
const bufferBytes = 56 * 1024

/**
 * What is shorter gets memory of its own: a slow reader would hold a whole buffer for it, and is
 * charged for its bytes alone.
 */
const shortBytes = bufferBytes / 2

/** The most idle buffers that are kept. */
const mostIdle = 8

/**
 * Buffers that are written again and again: new ones are mostly pages that the kernel has to clear
 * first, which took half of the time of a list that is answered from memory.
 */
export class BufferPool {
  readonly #idle: Buffer[] = []
  readonly #lent = new WeakMap<Uint8Array, Buffer>()

  /** To be called when nothing reads `chunk` any longer; absent: its memory is not the pool's. */
  releaseOf(chunk: Uint8Array): (() => void) | undefined {
    const buffer = this.#lent.get(chunk)
    if (!buffer) return undefined
    return () => {
      if (this.#lent.delete(chunk) && this.#idle.length < mostIdle) this.#idle.push(buffer)
    }
  }

  /**
   * The bytes of `parts` in as few chunks as fit into buffers of the pool; a part that is longer is
   * yielded uncopied, one without bytes not at all. Each chunk is the caller's until its
   * `releaseOf` is called; one that never is goes to the garbage collector.
   */
  *joined(parts: readonly Uint8Array[]): Generator<Uint8Array> {
    let group: Uint8Array[] = []
    let bytes = 0
    for (const part of parts) {
      if (part.byteLength === 0) continue
      if (bytes + part.byteLength > bufferBytes && group.length > 0) {
        yield this.#join(group, bytes)
        group = []
        bytes = 0
      }
      group.push(part)
      bytes += part.byteLength
    }
    if (group.length > 0) yield this.#join(group, bytes)
  }

  #join(parts: readonly Uint8Array[], bytes: number): Uint8Array {
    if (parts.length === 1 || bytes < shortBytes) return joined(parts)
    const buffer = this.#idle.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
    let at = 0
    for (const part of parts) {
      buffer.set(part, at)
      at += part.byteLength
    }
    const chunk = buffer.subarray(0, bytes)
    this.#lent.set(chunk, buffer)
    return chunk
  }
}
