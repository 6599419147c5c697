import type { Readable } from 'node:stream'

/** Chunks below this are merged. */
const smallBytes = 1024

/** The largest merged chunk. */
export const blockBytes = 4096

/**
 * Merges small chunks of a stream; to be called before any of it arrives. Node pushes each chunk of
 * HTTP/1.1, and each DATA frame, as a buffer of its own, which takes some 300 bytes besides its
 * content, but only the content counts for backpressure. So a body in chunks of one byte held 40 MB
 * where the limit was 128 KiB. What arrives in one turn is pushed at its end; while earlier data
 * waits to be read, what arrives is pushed once that is read, or a block is full. Before that,
 * `onPart` is called with the bytes of each chunk.
 */
export function mergeParts(stream: Readable, onPart: (bytes: number) => void): void {
  const [push, read] = [stream.push.bind(stream), stream.read.bind(stream)]
  let block: Uint8Array | undefined
  let used = 0
  let isDue = false
  const flush = (): void => {
    if (!block) return
    const part = block.subarray(0, used)
    block = undefined
    used = 0
    push(part)
  }
  const add = (part: Uint8Array): void => {
    if (used + part.byteLength > blockBytes) flush()
    if (!block) block = part
    else {
      const bytes = used + part.byteLength
      if (block.byteLength < bytes) {
        // A whole block for two bytes would take more than both of their buffers.
        const larger = Buffer.allocUnsafeSlow(Math.min(blockBytes, 2 * bytes))
        larger.set(block)
        block = larger
      }
      block.set(part, used)
    }
    used += part.byteLength
  }
  stream.push = (part: Uint8Array | null) => {
    if (part !== null) onPart(part.byteLength)
    if (part === null || part.byteLength >= smallBytes) {
      flush()
      return push(part)
    }
    add(part)
    if (!isDue) {
      isDue = true
      process.nextTick(() => {
        isDue = false
        if (stream.readableLength === 0) flush()
      })
    }
    return stream.readableLength + used < stream.readableHighWaterMark
  }
  stream.read = (bytes?: number) => {
    if (bytes !== 0) flush()
    return read(bytes) as unknown
  }
}
