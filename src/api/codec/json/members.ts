import { MalformedBody } from '../malformed-body.ts'
import { PathError } from '../element.ts'

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c

/** Whether a byte is white space between tokens of JSON. */
export const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The first index from `from` on that is no white space. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes[at])) at++
  return at
}

/** The index after the string that opens at `at`. */
function stringEnd(bytes: Buffer, at: number): number {
  let next = at + 1
  while (next < bytes.length) {
    const byte = bytes[next++]
    if (byte === quote) return next
    if (byte === backslash) next++
  }
  throw new MalformedBody('a string does not end')
}

/**
 * The index after the value that begins at `at`. The scanner has checked before that brackets
 * match.
 */
export function valueEnd(bytes: Buffer, at: number): number {
  const first = bytes[at]
  if (first === quote) return stringEnd(bytes, at)
  if (first !== 0x7b && first !== 0x5b) return literalEnd(bytes, at)
  let depth = 0
  let next = at
  while (next < bytes.length) {
    const byte = bytes[next++]
    if (byte === quote) {
      while (next < bytes.length) {
        const inner = bytes[next++]
        if (inner === quote) break
        if (inner === backslash) next++
      }
    } else if (byte === 0x7b || byte === 0x5b) depth++
    else if ((byte === 0x7d || byte === 0x5d) && --depth === 0) return next
  }
  throw new MalformedBody('a value does not end')
}

function literalEnd(bytes: Buffer, at: number): number {
  let next = at
  while (next < bytes.length && isLiteral(bytes[next])) next++
  if (next === at) throw new MalformedBody('no JSON value where one is expected')
  return next
}

const isLiteral = (byte: number | undefined): boolean =>
  byte !== comma && byte !== 0x7d && byte !== 0x5d && byte !== colon && !isSpace(byte)

/** The text of a string token, escapes decoded. */
export function textOf(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(bytes.toString('utf8', start, end)) as string
  } catch (cause) {
    throw new MalformedBody('a string with a bad escape', { cause })
  }
}

/**
 * Iterates over the members of the object at `at`, in their written order, one `next` each. Throws
 * `MalformedBody` for anything but an object.
 */
export class Members {
  readonly bytes: Buffer
  keyStart = 0
  keyEnd = 0
  valueStart = 0
  #valueEnd: number
  #escaped = false
  #first = true

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    if (bytes[at] !== 0x7b) throw new MalformedBody('no object where one is expected')
    this.#valueEnd = at + 1
  }

  /** The index after the value; computed at the first read. */
  get valueEnd(): number {
    if (this.#valueEnd === 0) this.#valueEnd = valueEnd(this.bytes, this.valueStart)
    return this.#valueEnd
  }

  /** Advances; `false` after the last member, with `valueEnd` after the closing bracket. */
  next(): boolean {
    let at = skipSpace(this.bytes, this.valueEnd)
    if (this.bytes[at] === 0x7d) {
      this.#valueEnd = at + 1
      return false
    }
    if (!this.#first) {
      if (this.bytes[at] !== comma) throw new MalformedBody('no comma between members')
      at = skipSpace(this.bytes, at + 1)
    }
    this.#first = false
    this.#key(at)
    at = skipSpace(this.bytes, this.keyEnd)
    if (this.bytes[at] !== colon) throw new MalformedBody('no colon after a key')
    this.valueStart = skipSpace(this.bytes, at + 1)
    this.#valueEnd = 0
    return true
  }

  #key(at: number): void {
    if (this.bytes[at] !== quote) throw new MalformedBody('no key where one is expected')
    this.keyStart = at
    this.#escaped = false
    let next = at + 1
    for (;;) {
      const byte = this.bytes[next++]
      if (byte === quote) break
      if (byte === undefined) throw new MalformedBody('a key does not end')
      if (byte === backslash) {
        this.#escaped = true
        next++
      }
    }
    this.keyEnd = next
  }

  is(key: string): boolean {
    if (this.#escaped) return this.key === key
    const start = this.keyStart + 1
    const { length } = key
    if (this.keyEnd - start - 1 < length) return false
    for (let at = 0; at < length; at++) {
      const unit = key.charCodeAt(at)
      if (unit > 0x7f) return this.key === key
      if (this.bytes[start + at] !== unit) return false
    }
    return this.keyEnd - start - 1 === length
  }

  get key(): string {
    return textOf(this.bytes, this.keyStart, this.keyEnd)
  }

  get isObject(): boolean {
    return this.bytes[this.valueStart] === 0x7b
  }

  /** The value if it is a string, else ''. */
  get string(): string {
    return this.bytes[this.valueStart] === quote
      ? textOf(this.bytes, this.valueStart, this.valueEnd)
      : ''
  }
}

/** The position of a member of an object or an element of a list. */
export interface Span {
  /** The position of the key, in an object. */
  readonly start: number
  readonly valueStart: number
  readonly end: number
}

/** The members of the object at `at`, as they were written; with a `key`, those that have it. */
export function membersOf(bytes: Buffer, at: number, key?: string): Span[] {
  const found: Span[] = []
  for (const members = new Members(bytes, at); members.next();) {
    if (key === undefined || members.is(key)) found.push(spanOf(members))
  }
  return found
}

const spanOf = ({ keyStart, valueStart, valueEnd: end }: Members): Span => ({
  start: keyStart,
  valueStart,
  end,
})

/** The elements of the list at `at`. */
export function elementsOf(bytes: Buffer, at: number): Span[] {
  const found: Span[] = []
  let next = skipSpace(bytes, at + 1)
  while (next < bytes.length && bytes[next] !== 0x5d) {
    const end = valueEnd(bytes, next)
    found.push({ start: next, valueStart: next, end })
    next = skipSpace(bytes, end)
    if (bytes[next] === 0x2c) next = skipSpace(bytes, next + 1)
  }
  return found
}

/**
 * The position of the value at `path`, from its step `from` on, relative to the value at `at`; -1
 * if there is none.
 */
export function locate(
  bytes: Buffer,
  at: number,
  path: readonly (string | number)[],
  from = 0,
): number {
  let place = at
  for (let i = from; i < path.length; i++) {
    const step = path[i] ?? ''
    if (place < 0) return -1
    place = typeof step === 'number' ? elementAt(bytes, place, step) : memberAt(bytes, place, step)
  }
  return place
}

function memberAt(bytes: Buffer, at: number, key: string): number {
  if (key === '*') throw new PathError('* in a path that has to lead to one value')
  if (bytes[at] !== 0x7b) return -1
  let last = -1
  for (const members = new Members(bytes, at); members.next();) {
    if (members.is(key)) last = members.valueStart
  }
  return last
}

function elementAt(bytes: Buffer, at: number, index: number): number {
  if (bytes[at] !== 0x5b) return -1
  return elementsOf(bytes, at)[index]?.valueStart ?? -1
}
