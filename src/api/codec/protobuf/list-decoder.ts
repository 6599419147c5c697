import { joined, lengthOf } from '../../../base/bytes.ts'
import type { GVK } from '../../kube/gvk.ts'
import type { ApiObject } from '../../kube/object.ts'
import {
  decodedChunk,
  type DecodedChunk,
  type DecodedListEnd,
  type ListDecoder,
} from '../decoder.ts'
import { maxObjectBytes, MalformedBody } from '../malformed-body.ts'
import { magic, rawNumber, readTypeMeta, typeMetaNumber } from './envelope.ts'
import { apiObject, metadataNumber } from './identity.ts'
import { Fields, lengthType, readHeader, type Header } from './wire.ts'

/** The field number of the items in every list. */
export const itemsNumber = 2

/**
 * See `ListDecoder`. Reads a list field by field, in the envelope and in its `raw` alike; only
 * `raw` itself is not buffered. Fields other than items belong to the head, the items or the tail
 * by their position.
 */
export class ProtobufListDecoder implements ListDecoder {
  /** A field that is not complete yet, from its beginning. */
  #carried: readonly Uint8Array[] = []
  /** Its length; 0 while unknown. */
  #needed = 0
  /** Of the field that is read. */
  readonly #read: Header = { number: 0, type: 0, valueStart: 0, valueEnd: 0 }
  #headReturned = false
  readonly #head: Uint8Array[] = []
  /** Fields after the last item: part of the tail, unless another item follows. */
  #after: Uint8Array[] = []
  #asideLength = 0
  #begun = false
  #gvk: GVK | undefined
  #rawLeft = 0
  #rawSeen = false
  #itemSeen = false
  #meta = { resourceVersion: '', continue: '' }
  #objects: ApiObject[] = []
  /** Where those begin and end in what is read, with what is between them; -1: none yet. */
  #from = -1
  #to = -1

  push(chunks: readonly Uint8Array[]): DecodedChunk {
    const parts = [...this.#carried, ...chunks]
    const isEnough = lengthOf(parts) >= this.#needed
    const pieces = isEnough ? this.#fields(joined(parts)) : []
    if (!isEnough) this.#carried = parts
    const objects = this.#objects
    this.#objects = []
    const isWhole = this.#itemSeen || (this.#rawSeen && this.#rawLeft === 0)
    const isDue = isWhole && !this.#headReturned
    const head = isDue && this.#gvk ? { gvk: this.#gvk, bytes: this.#head } : undefined
    if (head) this.#headReturned = true
    return decodedChunk(head, objects, pieces)
  }

  end(): DecodedListEnd {
    if (!this.#gvk || !this.#rawSeen || this.#rawLeft > 0 || this.#carried.length > 0) {
      throw new MalformedBody('the list ends too early')
    }
    return { gvk: this.#gvk, meta: this.#meta, extra: '', tail: this.#after }
  }

  /** Reads all complete fields, and carries the rest. Returns the bytes of their items. */
  #fields(bytes: Buffer): readonly Uint8Array[] {
    const before = [...this.#after]
    this.#from = this.#itemSeen ? 0 : -1
    this.#to = -1
    this.#needed = 0
    let at = 0
    while (at < bytes.length) {
      const end = this.#field(bytes, at)
      if (end < 0) break
      at = end
    }
    this.#carried = at < bytes.length ? [bytes.subarray(at)] : []
    return this.#to < 0 ? [] : [...before, bytes.subarray(this.#from, this.#to)]
  }

  /** Reads the field at `at` if it is complete. Returns where the next begins, or -1. */
  #field(bytes: Buffer, at: number): number {
    if (!this.#begun) return this.#magic(bytes, at)
    const header = this.#header(bytes, at)
    const end = header && (this.#isRaw(header) ? header.valueStart : header.valueEnd)
    if (!header || end === undefined || end > bytes.length) {
      this.#needed = end === undefined ? 0 : end - at
      return -1
    }
    const value = bytes.subarray(header.valueStart, end)
    if (this.#rawLeft === 0) this.#outside(header, bytes.subarray(at, end), value)
    else if (header.number === itemsNumber) this.#item(header, value, at)
    else this.#beside(header, bytes.subarray(at, end), value)
    return end
  }

  #magic(bytes: Buffer, at: number): number {
    const length = Math.min(magic.length, bytes.length - at)
    if (magic.compare(bytes, at, at + length, 0, length) !== 0) {
      throw new MalformedBody('no envelope')
    }
    if (length < magic.length) {
      this.#needed = magic.length
      return -1
    }
    this.#begun = true
    this.#head.push(bytes.subarray(at, at + length))
    return at + length
  }

  #header(bytes: Buffer, at: number): Header | undefined {
    const header = this.#read
    if (!readHeader(bytes, at, bytes.length, header)) return undefined
    if (this.#isRaw(header)) return header
    const length = header.valueEnd - at
    if (length > maxObjectBytes) throw new MalformedBody('larger than 16 MiB')
    if (this.#rawLeft > 0 && length > this.#rawLeft) throw new MalformedBody('a field does not end')
    return header
  }

  /** `raw` of the envelope: its content is read as it is received. */
  #isRaw(header: Header): boolean {
    return this.#rawLeft === 0 && header.number === rawNumber && header.type === lengthType
  }

  #outside(header: Header, whole: Buffer, value: Buffer): void {
    const over = this.#rawSeen
    if (this.#isRaw(header)) {
      if (this.#rawSeen) throw new MalformedBody('an envelope with two objects')
      this.#rawSeen = true
      this.#rawLeft = header.valueEnd - header.valueStart
    } else if (header.number === rawNumber || header.number === typeMetaNumber) {
      if (header.type !== lengthType) throw new MalformedBody('an envelope of no messages')
      this.#gvk = readTypeMeta(value)
    }
    this.#aside(whole, over)
  }

  #item(header: Header, value: Buffer, at: number): void {
    if (header.type !== lengthType) throw new MalformedBody('an item that is no message')
    if (!this.#gvk) throw new MalformedBody('an envelope that says its kind too late')
    this.#rawLeft -= header.valueEnd - at
    this.#objects.push(apiObject(value))
    this.#itemSeen = true
    if (this.#from < 0) this.#from = at
    this.#to = header.valueEnd
    this.#after = []
  }

  #beside(header: Header, whole: Buffer, value: Buffer): void {
    this.#rawLeft -= whole.length
    if (header.number === metadataNumber) {
      if (header.type !== lengthType) throw new MalformedBody('metadata that is no message')
      this.#readMeta(value)
    }
    this.#aside(whole, this.#itemSeen)
  }

  /** A field other than an item; a list has few. */
  #aside(whole: Buffer, after: boolean): void {
    if (after) this.#after.push(whole)
    else this.#head.push(whole)
    this.#asideLength += whole.length
    if (this.#asideLength > maxObjectBytes)
      throw new MalformedBody('a list with too much around it')
  }

  #readMeta(bytes: Buffer): void {
    for (const fields = new Fields(bytes); fields.next();) {
      const isText = fields.type === lengthType
      if ((fields.number === 2 || fields.number === 3) && !isText) {
        throw new MalformedBody('a version that is no text')
      }
      if (fields.number === 2) this.#meta.resourceVersion = fields.string
      else if (fields.number === 3) this.#meta.continue = fields.string
    }
  }
}
