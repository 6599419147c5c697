import { joined } from '../../../base/bytes.ts'
import type { GVK } from '../../kube/gvk.ts'
import type { Projection } from '../../kube/media-type.ts'
import type { ApiObject } from '../../kube/object.ts'
import { CarriedBytes } from '../carried-bytes.ts'
import {
  decodedChunk,
  type DecodedChunk,
  type DecodedListEnd,
  type ListDecoder,
  type ListHead,
} from '../decoder.ts'
import { maxObjectBytes, MalformedBody } from '../malformed-body.ts'
import { listKind } from '../list.ts'
import { apiObject, gvkIn } from './single.ts'
import { ListMembers } from './list-members.ts'
import { isSpace } from './members.ts'
import { Scanner } from './scanner.ts'

const comma = Buffer.from(',')

/** Where in the array of objects the next byte is. */
type Position = 'first' | 'object' | 'after' | 'next'

/** See `ListDecoder`. */
export class JsonListDecoder implements ListDecoder {
  readonly #projection: Projection
  readonly #envelope = new ListMembers()
  readonly #scanner = new Scanner()
  readonly #carry = new CarriedBytes()
  readonly #head: Uint8Array[] = []
  readonly #tail: Uint8Array[] = []
  /**
   * White space after the last object, without the comma. It precedes the next object, or the tail.
   */
  #gap: Uint8Array[] = []
  /** How much white space was kept between chunks. */
  #blank = 0
  position: Position = 'first'
  #inside = false
  /** Everything before the first object was received. */
  #headWhole = false
  #headReturned = false
  /** The kind of the list when its first object was complete. */
  #gvk: GVK | undefined

  constructor(projection: Projection) {
    this.#projection = projection
  }

  push(chunks: readonly Uint8Array[]): DecodedChunk {
    const bytes = joined(chunks)
    const objects: ApiObject[] = []
    const pieces: Uint8Array[] = []
    let at = 0
    while (at < bytes.length) {
      at = this.#inside ? this.#objects(bytes, at, objects, pieces) : this.#outside(bytes, at)
    }
    return decodedChunk(this.#headIfNew(), objects, pieces)
  }

  end(): DecodedListEnd {
    this.#envelope.end()
    const gvk = this.#envelope.gvk
    if (!gvk) throw new MalformedBody('a list that does not say its kind')
    const { meta, extra } = this.#envelope
    return { gvk, meta, extra, tail: [...this.#gap, ...this.#tail] }
  }

  #headIfNew(): ListHead | undefined {
    if (this.#headReturned || !this.#headWhole) return undefined
    const gvk = this.#gvk ?? this.#envelope.gvk
    if (!gvk) return undefined
    this.#headReturned = true
    return { gvk, bytes: this.#head }
  }

  /** Custom resources name the kind of a list after its objects, and that of each object. */
  #kindBy(first: Buffer): GVK {
    const own = this.#envelope.gvk
    if (own) return own
    const gvk = this.#projection === 'object' ? gvkIn(first) : undefined
    if (!gvk) throw new MalformedBody('a list that says its kind too late')
    return listKind(gvk)
  }

  /** The members around the objects, through the bracket that opens the array. */
  #outside(bytes: Buffer, from: number): number {
    const at = this.#envelope.scan(bytes, from)
    const part = bytes.subarray(from, at)
    if (this.#headWhole) this.#tail.push(part)
    else this.#head.push(part)
    if (this.#envelope.opened) this.#inside = true
    else if (this.#envelope.nullItems) this.#headWhole = true
    return at
  }

  /** The array, up to the bracket that closes it. */
  #objects(bytes: Buffer, from: number, objects: ApiObject[], pieces: Uint8Array[]): number {
    const end = bytes.length
    // Positions in this chunk: the run of complete objects, and the start of an incomplete one.
    let runStart = -1
    let runEnd = from
    let start = this.position === 'object' ? from : -1
    let at = from
    while (at < end) {
      if (this.position === 'object') {
        const after = this.#scanner.scan(bytes, at, end)
        if (after < 0) break
        const carried = this.#carry.length > 0
        const object = carried
          ? this.#carry.take(bytes.subarray(start, after))
          : bytes.subarray(start, after)
        this.#gvk ??= this.#kindBy(object)
        objects.push(apiObject(object))
        if (carried || runStart < 0) {
          pieces.push(...this.#gap)
          this.#gap = []
          if (carried) pieces.push(object)
          runStart = carried ? after : start
        }
        runEnd = at = after
        this.position = 'after'
        continue
      }
      const byte = bytes[at]
      if (isSpace(byte)) at++
      else if (byte === 0x5d && this.position !== 'next') {
        this.#close(bytes.subarray(runEnd, at))
        break
      } else if (byte === 0x2c && this.position === 'after') {
        this.position = 'next'
        at++
      } else if (byte === 0x7b && this.position !== 'after') {
        if (this.position === 'first') this.#head.push(bytes.subarray(from, at))
        // Inside a run the white space is part of the run.
        else if (runStart < 0) this.#gap.push(...withoutComma(bytes.subarray(runEnd, at)))
        this.position = 'object'
        this.#headWhole = true
        start = at
      } else throw new MalformedBody('no object where one is expected in a list')
    }
    if (runStart >= 0 && runEnd > runStart) pieces.push(bytes.subarray(runStart, runEnd))
    if (!this.#inside) return at
    this.#leave(bytes, { runStart, runEnd, start })
    return end
  }

  /** Keeps the incomplete end of the chunk. */
  #leave(
    bytes: Buffer,
    { runStart, runEnd, start }: Readonly<Record<'runStart' | 'runEnd' | 'start', number>>,
  ): void {
    if (this.position === 'object') {
      if (runStart >= 0) this.#gap.push(...withoutComma(bytes.subarray(runEnd, start)))
      this.#carry.add(bytes.subarray(start))
      return
    }
    if (this.position === 'first') this.#head.push(bytes.subarray(runEnd))
    else this.#gap.push(...withoutComma(bytes.subarray(runEnd)))
    this.#blank += bytes.length - runEnd
    if (this.#blank > maxObjectBytes)
      throw new MalformedBody('white space without an end in a list')
  }

  #close(space: Uint8Array): void {
    if (this.position === 'first') this.#head.push(space)
    else this.#gap.push(space)
    this.#headWhole = true
    this.#inside = false
    this.#envelope.close()
  }
}

/**
 * The white space between two objects without the comma, which is written when objects are joined.
 */
function withoutComma(space: Buffer): Uint8Array[] {
  const at = space.indexOf(comma)
  const parts = at < 0 ? [space] : [space.subarray(0, at), space.subarray(at + 1)]
  return parts.filter(({ length }) => length > 0)
}
