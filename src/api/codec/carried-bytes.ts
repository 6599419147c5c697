import { asBuffer, unpinned } from '../../base/bytes.ts'
import { maxObjectBytes, MalformedBody } from './malformed-body.ts'

/** The bytes so far of a token or object whose end is in a later chunk. */
export class CarriedBytes {
  #parts: Uint8Array[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Keeps `part`. */
  add(part: Uint8Array): void {
    this.#length += part.byteLength
    if (this.#length > maxObjectBytes) throw new MalformedBody('larger than 16 MiB')
    if (part.byteLength === 0) return
    this.#parts.push(unpinned(part))
  }

  /** All parts and the last one in one buffer; the carry is empty afterwards. */
  take(last: Uint8Array): Buffer {
    if (this.#length + last.byteLength > maxObjectBytes) {
      throw new MalformedBody('larger than 16 MiB')
    }
    if (this.#length === 0) return asBuffer(last)
    this.#parts.push(last)
    const whole = Buffer.concat(this.#parts)
    this.#parts = []
    this.#length = 0
    return whole
  }
}
