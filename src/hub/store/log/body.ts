import type { Segment } from './segment.ts'

/** What a record says of a body in its own frame. */
export type BodyMark = readonly [length: number, digest: number, serial: number]

/** What a record says of a body that an earlier frame has brought: where it is, too. */
export type PlacedMark = readonly [...BodyMark, segment: number, offset: number]

/**
 * The bytes of an object or document in the log. What refers to it holds it: the bytes of a body
 * that is not held are garbage, and gone after a compaction, which moves the others.
 */
export class Body {
  segment: Segment
  offset: number
  /** As stored: a sealed body is longer than what it seals. */
  readonly length: number
  /** Of the bytes before sealing: equal for equal bytes. */
  readonly digest: number
  /** Larger than of any body before it. */
  readonly serial: number
  #holders = 0

  constructor(segment: Segment, offset: number, [length, digest, serial]: BodyMark) {
    this.segment = segment
    this.offset = offset
    this.length = length
    this.digest = digest
    this.serial = serial
  }

  get isHeld(): boolean {
    return this.#holders > 0
  }

  get mark(): PlacedMark {
    return [this.length, this.digest, this.serial, this.segment.id, this.offset]
  }

  hold(): this {
    if (this.#holders === 0) this.segment.live += this.length
    this.#holders += 1
    return this
  }

  release(): void {
    this.#holders -= 1
    if (this.#holders === 0) this.segment.live -= this.length
  }

  moveTo(segment: Segment, offset: number): void {
    this.segment.live -= this.length
    this.segment = segment
    this.offset = offset
    this.segment.live += this.length
  }
}
