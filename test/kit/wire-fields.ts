/** One field on the wire: a number for wire type 0, the bytes of its value for 1, 2 and 5. */
export interface WireField {
  readonly number: number
  readonly value: number | Buffer
}

/**
 * The fields of a message in wire order, by a reader that shares nothing with the one under test.
 * Throws for truncated or invalid bytes.
 */
export function* readFields(message: Buffer): Generator<WireField> {
  const reader = new Reader(message)
  while (!reader.atEnd) {
    const tag = reader.varint()
    const number = Math.floor(tag / 8)
    if (number < 1 || number > 0x1fff_ffff) throw new Error('a field without a number')
    yield { number, value: reader.value(tag % 8) }
  }
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  value(wireType: number): number | Buffer {
    switch (wireType) {
      case 0:
        return this.varint()
      case 1:
        return this.#take(8)
      case 2:
        return this.#take(this.varint())
      case 5:
        return this.#take(4)
      default:
        throw new Error(`wire type ${wireType}`)
    }
  }

  /** A signed 64-bit number, rounded beyond 2^53. */
  varint(): number {
    let value = 0
    for (let at = 0; at < 7; at++) {
      const byte = this.#byte()
      value += (byte & 127) * 128 ** at
      if (byte < 128) return value
    }
    return this.#longVarint(value)
  }

  /** The last three of ten bytes, after the seven that made `low`. */
  #longVarint(low: number): number {
    let value = BigInt(low)
    for (let at = 7n; at < 10n; at++) {
      const byte = this.#byte()
      value |= BigInt(byte & 127) << (7n * at)
      if (byte < 128) return Number(BigInt.asIntN(64, value))
    }
    throw new Error('a number longer than 64 bits')
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new Error('the bytes break off')
    return byte
  }

  #take(length: number): Buffer {
    if (!(length >= 0 && length <= this.#bytes.length - this.#at))
      throw new Error('the bytes break off')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
