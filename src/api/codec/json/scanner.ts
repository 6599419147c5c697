import { maxNesting, MalformedBody } from '../malformed-body.ts'

const quote = 0x22
const backslash = 0x5c

const opening = 1
const closing = 2
const quoting = 3

/** The bytes that end a skip: brackets and quotes; every other byte is 0. */
const stops = new Uint8Array(256)
stops[0x7b] = opening
stops[0x5b] = opening
stops[0x7d] = closing
stops[0x5d] = closing
stops[quote] = quoting

const literal = new Uint8Array(256)
for (const character of '+-.0123456789Eaeflnrstu') literal[character.charCodeAt(0)] = 1

type State = 'start' | 'nested' | 'string' | 'escape' | 'literal'

/**
 * Finds the end of one JSON value in chunks split anywhere. It checks only that brackets and
 * strings match; whether `1e` is a number is left to the decoder.
 */
export class Scanner {
  #stack = new Uint8Array(64)
  #depth = 0
  #state: State = 'start'

  /**
   * The index after the value, or -1 if it continues in the next chunk. The first call has `at` on
   * its first byte.
   */
  scan(bytes: Buffer, at: number, end: number): number {
    switch (this.#state) {
      case 'start':
        return this.#start(bytes, at, end)
      case 'literal':
        return this.#literal(bytes, at, end)
      case 'escape':
        this.#state = 'string'
        return this.#string(bytes, at + 1, end)
      case 'string':
        return this.#string(bytes, at, end)
      case 'nested':
        return this.#nested(bytes, at, end)
    }
  }

  #start(bytes: Buffer, at: number, end: number): number {
    const first = bytes[at] as number
    if (stops[first] === opening) return this.#nested(bytes, at, end)
    if (first === quote) return this.#string(bytes, at + 1, end)
    if (literal[first] === 1) return this.#literal(bytes, at, end)
    throw new MalformedBody('no JSON value where one is expected')
  }

  #literal(bytes: Buffer, from: number, end: number): number {
    let at = from
    while (at < end && literal[bytes[at] as number] === 1) at++
    this.#state = at < end ? 'start' : 'literal'
    return at < end ? at : -1
  }

  #string(bytes: Buffer, from: number, end: number): number {
    let at = from
    while (at < end) {
      const byte = bytes[at++] as number
      if (byte === quote) {
        this.#state = this.#depth === 0 ? 'start' : 'nested'
        return this.#depth === 0 ? at : this.#nested(bytes, at, end)
      }
      if (byte === backslash) at++
    }
    this.#state = at > end ? 'escape' : 'string'
    return -1
  }

  /** The hot loop: strings are skipped inline to keep it one loop. */
  #nested(bytes: Buffer, from: number, end: number): number {
    let stack = this.#stack
    let depth = this.#depth
    let at = from
    while (at < end) {
      const byte = bytes[at++] as number
      const stop = stops[byte] as number
      if (stop === 0) continue
      if (stop === quoting) {
        let inside = true
        while (at < end) {
          const next = bytes[at++] as number
          if (next === quote) {
            inside = false
            break
          }
          if (next === backslash) at++
        }
        if (inside) {
          this.#depth = depth
          this.#state = at > end ? 'escape' : 'string'
          return -1
        }
      } else if (stop === opening) {
        if (depth === stack.length) stack = this.#deeper()
        stack[depth++] = byte
      } else {
        // In ASCII a closing bracket is its opening one plus 2.
        if (depth === 0 || stack[--depth] !== byte - 2) {
          throw new MalformedBody('brackets do not match')
        }
        if (depth === 0) {
          this.#depth = 0
          this.#state = 'start'
          return at
        }
      }
    }
    this.#depth = depth
    this.#state = 'nested'
    return -1
  }

  #deeper(): Uint8Array<ArrayBuffer> {
    if (this.#stack.length >= maxNesting) throw new MalformedBody('nested too deeply')
    const deeper = new Uint8Array(Math.min(this.#stack.length * 4, maxNesting))
    deeper.set(this.#stack)
    this.#stack = deeper
    return deeper
  }
}
