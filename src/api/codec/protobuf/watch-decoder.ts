import { asBuffer } from '../../../base/bytes.ts'
import type { GVK } from '../../kube/gvk.ts'
import { CarriedBytes } from '../carried-bytes.ts'
import { maxObjectBytes, MalformedBody } from '../malformed-body.ts'
import type { WatchDecoder } from '../decoder.ts'
import { bookmarkEvent, isEventType, type WatchEvent } from '../watch.ts'
import { openEnvelope } from './envelope.ts'
import { ProtobufCursor } from './cursor.ts'
import { apiObject } from './identity.ts'
import { readStatus } from './status.ts'
import { Fields, lengthType } from './wire.ts'

/** A frame begins with its length in four bytes, big-endian. */
const lengthBytes = 4

/** See `WatchDecoder`. */
export class ProtobufWatchDecoder implements WatchDecoder {
  readonly #carry = new CarriedBytes()
  /** The length of the carried frame with its length prefix; 0 while unknown. */
  #needed = 0
  gvk: GVK = { group: '', version: '', kind: '' }

  push(chunk: Uint8Array): WatchEvent[] {
    const events: WatchEvent[] = []
    let bytes = asBuffer(chunk)
    while (bytes.length > 0) {
      const needed = this.#needed || lengthBytes
      const missing = needed - this.#carry.length
      if (bytes.length < missing) {
        this.#carry.add(bytes)
        break
      }
      if (this.#needed === 0) {
        bytes = this.#begin(bytes, missing)
        if (this.#needed === this.#carry.length) events.push(this.#event(this.#take(bytes, 0)))
        continue
      }
      events.push(this.#event(this.#take(bytes, missing)))
      bytes = bytes.subarray(missing)
    }
    return events
  }

  end(): void {
    if (this.#carry.length > 0 || this.#needed > 0) {
      throw new MalformedBody('the watch ends in the middle of an event')
    }
  }

  /** Reads the length of a frame; carries it if the chunk ends there. */
  #begin(bytes: Buffer, missing: number): Buffer {
    const carried = this.#carry.length > 0
    const start = this.#carry.take(bytes.subarray(0, missing))
    const length = start.readUInt32BE(0)
    if (length + lengthBytes > maxObjectBytes) throw new MalformedBody('larger than 16 MiB')
    this.#needed = length + lengthBytes
    if (!carried) return bytes
    this.#carry.add(start)
    return bytes.subarray(missing)
  }

  #take(bytes: Buffer, missing: number): Buffer {
    this.#needed = 0
    return this.#carry.take(bytes.subarray(0, missing))
  }

  #event(frame: Buffer): WatchEvent {
    let type = ''
    let value: Buffer | undefined
    for (const fields = new Fields(frame, lengthBytes); fields.next();) {
      if (fields.number === 1) type = fields.string
      else if (fields.number === 2 && fields.type === lengthType) value = rawOf(fields.value)
    }
    if (type === '') throw new MalformedBody('an event without a type')
    if (!isEventType(type)) return { type: 'UNREAD', frame }
    if (!value) throw new MalformedBody('an event without an object')
    const { gvk, raw } = openEnvelope(value)
    if (type === 'ERROR') return { type, status: readStatus(raw), frame }
    this.gvk = gvk
    const object = apiObject(raw)
    if (type !== 'BOOKMARK') return { type, object, frame }
    return bookmarkEvent(new ProtobufCursor(gvk, object), frame)
  }
}

function rawOf(extension: Buffer): Buffer | undefined {
  let raw: Buffer | undefined
  for (const fields = new Fields(extension); fields.next();) {
    if (fields.number === 1 && fields.type === lengthType) raw = fields.value
  }
  return raw
}
