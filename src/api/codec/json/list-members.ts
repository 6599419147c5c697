import { parseApiVersion, type GVK } from '../../kube/gvk.ts'
import type { Json } from '../../kube/json.ts'
import { textAt } from '../../kube/json-at.ts'
import type { ListMeta } from '../../kube/object.ts'
import { CarriedBytes } from '../carried-bytes.ts'
import { maxObjectBytes, MalformedBody, parsedJson } from '../malformed-body.ts'
import { isSpace, textOf } from './members.ts'
import { Scanner } from './scanner.ts'

type Position =
  | 'document'
  | 'first'
  | 'key'
  | 'in key'
  | 'colon'
  | 'value'
  | 'in value'
  | 'array'
  | 'after'
  | 'done'

/**
 * Reads the members of a list around its objects, from chunks split anywhere. It stops after the
 * bracket that opens the objects; `close` continues after them. The total size of these members is
 * bounded.
 */
export class ListMembers {
  readonly #scanner = new Scanner()
  readonly #token = new CarriedBytes()
  position: Position = 'document'
  #key = ''
  #rawKey = ''
  #kind = ''
  #apiVersion = ''
  #meta: ListMeta = { resourceVersion: '', continue: '' }
  #extra: string[] = []
  #seen = false
  #length = 0
  /** The objects begin where the last `scan` stopped. */
  opened = false
  /** `"items":null` is an empty list. */
  nullItems = false

  get gvk(): GVK | undefined {
    if (this.#kind === '' || this.#apiVersion === '') return undefined
    return { ...parseApiVersion(this.#apiVersion), kind: this.#kind }
  }

  get meta(): ListMeta {
    return this.#meta
  }

  get extra(): string {
    return this.#extra.join(',')
  }

  /** The objects have ended; the next `scan` begins with the bracket that closes them. */
  close(): void {
    this.opened = false
  }

  end(): void {
    if (this.position !== 'done') throw new MalformedBody('the list ends too early')
    if (!this.#seen) throw new MalformedBody('a list without items')
  }

  /**
   * Returns where it stopped: at the end of the chunk, after the bracket that opens the objects, or
   * after their null.
   */
  scan(bytes: Buffer, from: number): number {
    let at = from
    // A token that began in the previous chunk continues here.
    let start = from
    while (at < bytes.length && !this.opened) {
      if (this.position === 'in key' || this.position === 'in value') {
        const after = this.#scanner.scan(bytes, at, bytes.length)
        if (after < 0) {
          at = bytes.length
          break
        }
        this.#took(this.#token.take(bytes.subarray(start, after)))
        at = after
        if (this.nullItems && this.#key === 'items') break
        continue
      }
      if (!isSpace(bytes[at])) {
        if (this.#step(bytes[at])) start = at
        else at++
      } else at++
    }
    if (this.position === 'in key' || this.position === 'in value') {
      this.#token.add(bytes.subarray(start, at))
    }
    this.#length += at - from
    if (this.#length > maxObjectBytes) throw new MalformedBody('a list with too much around it')
    return at
  }

  /**
   * One byte outside of keys and values; `true` if it is the first byte of a key or value to read.
   */
  #step(byte: number | undefined): boolean {
    switch (this.position) {
      case 'document':
        return this.#expect(byte, 0x7b, 'first')
      case 'first':
        if (byte === 0x7d) return this.#expect(byte, 0x7d, 'done')
        return this.#begin(byte === 0x22, 'in key')
      case 'key':
        return this.#begin(byte === 0x22, 'in key')
      case 'colon':
        return this.#expect(byte, 0x3a, 'value')
      case 'value':
        if (this.#key !== 'items') return this.#begin(true, 'in value')
        if (this.#seen) throw new MalformedBody('a list with items twice')
        this.#seen = true
        if (byte !== 0x5b) return this.#begin(byte === 0x6e, 'in value')
        this.opened = true
        return this.#expect(byte, 0x5b, 'array')
      case 'array':
        return this.#expect(byte, 0x5d, 'after')
      case 'after':
        return byte === 0x7d ? this.#expect(byte, 0x7d, 'done') : this.#expect(byte, 0x2c, 'key')
      default:
        throw new MalformedBody('something follows the list')
    }
  }

  #expect(byte: number | undefined, expected: number, next: Position): false {
    if (byte !== expected) throw new MalformedBody('not a list in JSON')
    this.position = next
    return false
  }

  #begin(allowed: boolean, next: Position): true {
    if (!allowed) throw new MalformedBody('not a list in JSON')
    this.position = next
    return true
  }

  #took(token: Buffer): void {
    if (this.position === 'in key') {
      this.#rawKey = token.toString()
      this.#key = textOf(token, 0, token.length)
      this.position = 'colon'
      return
    }
    this.position = 'after'
    const value = (): Json => parsedJson(token.toString())
    if (this.#key === 'items') this.nullItems = nullOnly(value())
    else if (this.#key === 'kind') this.#kind = textAt(value())
    else if (this.#key === 'apiVersion') this.#apiVersion = textAt(value())
    else if (this.#key === 'metadata') this.#meta = listMeta(value())
    else this.#extra.push(`${this.#rawKey}:${token.toString()}`)
  }
}

function nullOnly(value: Json): true {
  if (value !== null) throw new MalformedBody('the objects of a list are no array')
  return true
}

const listMeta = (value: Json): ListMeta => ({
  resourceVersion: textAt(value, 'resourceVersion'),
  continue: textAt(value, 'continue'),
})
