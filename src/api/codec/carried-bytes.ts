import { asBuffer } from '../../base/bytes.ts'
import { maxObjectBytes, MalformedBody } from './malformed-body.ts'

/** What came so far of something whose end is in a later chunk. */
export class CarriedBytes {
  #parts: Uint8Array[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Keeps `part`: in a copy where it would hold on to much more memory than it is. */
  add(part: Uint8Array): void {
    this.#length += part.byteLength
    if (this.#length > maxObjectBytes) throw new MalformedBody('larger than 16 MiB')
    if (part.byteLength === 0) return
    const small = part.byteLength * 2 < part.buffer.byteLength
    this.#parts.push(small ? Buffer.from(part) : part)
  }

  /** All of it with its last part, in one buffer; nothing is carried afterwards. */
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
