import { putVarint, varintLength } from '../wire.ts'

/**
 * Writes protobuf backwards, so that the length of a message is known when it is written: later
 * writes come first in the output. The caller writes field numbers and wire types.
 */
export class BackwardWriter {
  #bytes = Buffer.allocUnsafe(1024)
  #start = 1024

  /** How many bytes are written; a difference of two readings is a length. */
  get length(): number {
    return this.#bytes.length - this.#start
  }

  bytes(bytes: Uint8Array): void {
    this.#claim(bytes.length)
    this.#bytes.set(bytes, this.#start)
  }

  string(text: string): void {
    this.#claim(Buffer.byteLength(text))
    this.#bytes.write(text, this.#start)
  }

  /** An integer. */
  varint(value: number): void {
    this.#claim(varintLength(value))
    putVarint(this.#bytes, this.#start, value)
  }

  /** The length of the bytes written since `length` was `before`. */
  delimit(before: number): void {
    this.varint(this.length - before)
  }

  tag(field: number, wireType: number): void {
    this.varint(field * 8 + wireType)
  }

  /** The output, front to end. */
  finish(): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#start))
  }

  #claim(count: number): void {
    if (count > this.#start) {
      const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.length + count))
      grown.set(this.#bytes.subarray(this.#start), grown.length - this.length)
      this.#start = grown.length - this.length
      this.#bytes = grown
    }
    this.#start -= count
  }
}
