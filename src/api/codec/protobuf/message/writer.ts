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

  /** An integer; negative ones take ten bytes, as 64-bit complements. */
  varint(value: number): void {
    if (value < 0) return this.#bigVarint(BigInt.asUintN(64, BigInt(value)))
    let groups = 1
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) groups++
    this.#claim(groups)
    let rest = value
    for (let at = 0; at < groups; at++) {
      const more = at < groups - 1 ? 128 : 0
      this.#bytes[this.#start + at] = (rest % 128) | more
      rest = Math.floor(rest / 128)
    }
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

  #bigVarint(value: bigint): void {
    const groups: number[] = []
    for (let rest = value; rest > 0n || groups.length === 0; rest >>= 7n)
      groups.push(Number(rest & 127n) | (rest > 127n ? 128 : 0))
    this.bytes(Uint8Array.from(groups))
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
