import { PathError } from '../element.ts'
import { Members, skipSpace, valueEnd } from './members.ts'

/** The position of a member of an object or an element of a list. */
export interface Span {
  /** The position of the key, in an object. */
  readonly start: number
  readonly valueStart: number
  readonly end: number
}

/** The members of the object at `at` that have this key, in the order they were written. */
export function membersNamed(bytes: Buffer, at: number, key: string): Span[] {
  const found: Span[] = []
  for (const members = new Members(bytes, at); members.next();) {
    if (members.is(key)) found.push(spanOf(members))
  }
  return found
}

/** All members of the object at `at`. */
export function membersOf(bytes: Buffer, at: number): Span[] {
  const found: Span[] = []
  for (const members = new Members(bytes, at); members.next();) found.push(spanOf(members))
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

/**
 * The position of the object in a Table's row; -1 if the row has none. `bytes` are a row, or a
 * Table of one.
 */
export function rowObject(bytes: Buffer): number {
  for (const members = new Members(bytes, 0); members.next();) {
    if (members.is('object') && members.isObject) return members.valueStart
    if (members.is('rows')) return locate(bytes, members.valueStart, [0, 'object'])
  }
  return -1
}
