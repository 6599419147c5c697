import { asBuffer } from '../../../base/bytes.ts'
import type { GVK } from '../../kube/gvk.ts'
import type { Projection } from '../../kube/media-type.ts'
import { CarriedBytes } from '../carried-bytes.ts'
import { maxObjectBytes, MalformedBody, parsedJson } from '../malformed-body.ts'
import { statusOf } from '../protobuf/status.ts'
import type { WatchDecoder } from '../decoder.ts'
import { bookmarkEvent, isEventType, type WatchEvent } from '../watch.ts'
import { JsonCursor } from './cursor.ts'
import { apiObject, repeatedKind, separateKind, type RepeatedKind } from './single.ts'
import { isSpace, Members } from './members.ts'
import { Scanner } from './scanner.ts'

const newline = 0x0a
const newlineBytes = Buffer.from('\n')

/** See `WatchDecoder`. */
export class JsonWatchDecoder implements WatchDecoder {
  readonly #projection: Projection
  readonly #scanner = new Scanner()
  /** The beginning of a frame that ends in a later chunk; most end in their own. */
  #carry: CarriedBytes | undefined
  #led: RepeatedKind | undefined
  #inFrame = false
  gvk: GVK = { group: '', version: '', kind: '' }

  constructor(projection: Projection) {
    this.#projection = projection
  }

  push(chunk: Uint8Array): WatchEvent[] {
    const bytes = asBuffer(chunk)
    const events: WatchEvent[] = []
    let at = 0
    let start = 0
    while (at < bytes.length) {
      if (this.#inFrame) {
        const after = this.#scanner.scan(bytes, at, bytes.length)
        if (after < 0) {
          this.#carry ??= new CarriedBytes()
          this.#carry.add(bytes.subarray(start))
          break
        }
        this.#inFrame = false
        at = bytes[after] === newline ? after + 1 : after
        events.push(this.#event(this.#frame(bytes, start, after, at)))
      } else if (bytes[at] === 0x7b) {
        this.#inFrame = true
        start = at
      } else if (isSpace(bytes[at])) at++
      else throw new MalformedBody('no event where one is expected')
    }
    return events
  }

  end(): void {
    if (this.#inFrame) throw new MalformedBody('the watch ends in the middle of an event')
  }

  /** Does not wait for the newline after an event: the event would be late by one. */
  #frame(bytes: Buffer, start: number, after: number, end: number): Buffer {
    const last = bytes.subarray(start, end)
    const frame = this.#carry?.take(last) ?? last
    this.#carry = undefined
    if (frame.length > maxObjectBytes) throw new MalformedBody('larger than 16 MiB')
    return end > after ? frame : Buffer.concat([frame, newlineBytes])
  }

  #event(frame: Buffer): WatchEvent {
    let kind = ''
    let value: Buffer | undefined
    for (const members = new Members(frame, 0); members.next();) {
      if (members.is('type')) kind = members.string
      else if (members.is('object')) {
        value = frame.subarray(members.valueStart, members.valueEnd)
      }
    }
    if (kind === '') throw new MalformedBody('an event without a type')
    if (!isEventType(kind)) return { type: 'UNREAD', frame }
    if (!value) throw new MalformedBody('an event without an object')
    if (kind === 'ERROR')
      return { type: kind, status: statusOf(parsedJson(value.toString())), frame }
    if (kind === 'BOOKMARK') return this.#bookmark(value, frame)
    return { type: kind, object: apiObject(this.#withoutKind(value)), frame }
  }

  #withoutKind(value: Buffer): Buffer {
    this.#led = repeatedKind(value, this.#led)
    const { gvk, bytes } = separateKind(value, this.#projection, this.#led)
    this.gvk = gvk
    return bytes
  }

  #bookmark(value: Buffer, frame: Buffer): WatchEvent {
    const object = apiObject(value)
    // Such a one may lack its kind, too.
    if (object.resourceVersion === '') return { type: 'UNREAD', frame }
    this.#withoutKind(value)
    return bookmarkEvent(new JsonCursor(this.gvk, object), frame)
  }
}
