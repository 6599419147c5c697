import { PathError } from '../element.ts'
import { MalformedBody } from '../malformed-body.ts'
import type { Field } from '../schema/schema.ts'
import { Fields, lengthType, signedVarint, varintEnd, varintType } from './wire.ts'

/** One occurrence of a field: the position of its value. */
export interface Occurrence {
  readonly bytes: Buffer
  readonly type: number
  readonly start: number
  readonly end: number
}

/** The field at which `fields` stands. */
export const occurrenceOf = ({ bytes, type, valueStart, valueEnd }: Fields): Occurrence => ({
  bytes,
  type,
  start: valueStart,
  end: valueEnd,
})

/** A complete message, as if it were the value of a field. */
export const whole = (bytes: Buffer): Occurrence => ({
  bytes,
  type: lengthType,
  start: 0,
  end: bytes.length,
})

/** The fields of a message. Throws `MalformedBody` for a value of another type. */
export function fieldsIn(message: Occurrence): Fields {
  checkLength(message)
  return new Fields(message.bytes, message.start, message.end)
}

/**
 * The limit of values that are held at once: an empty one takes a byte or two in a body, and an
 * object in memory.
 */
export const mostValues = 2_000_000

export const tooMany = (): MalformedBody => new MalformedBody(`more than ${mostValues} values`)

/**
 * The occurrences of a field in a message, which may itself be in several pieces; packed numbers
 * are separated. Throws `MalformedBody`.
 */
export function occurrences(pieces: readonly Occurrence[], field: Field): Occurrence[] {
  const found: Occurrence[] = []
  for (const piece of pieces) {
    for (const fields = fieldsIn(piece); fields.next();) {
      if (fields.number === field.number) addElements(found, occurrenceOf(fields), field)
    }
  }
  return found
}

/** The values in one occurrence of a field: one, or the packed numbers. */
export function elementsIn(one: Occurrence, field: Field): Occurrence[] {
  const found: Occurrence[] = []
  addElements(found, one, field)
  return found
}

function addElements(found: Occurrence[], one: Occurrence, field: Field): void {
  if (isPacked(field, one)) for (const number of unpacked(one)) add(found, number)
  else add(found, one)
}

function add(found: Occurrence[], one: Occurrence): void {
  if (found.push(one) > mostValues) throw tooMany()
}

const isNumber = ({ type }: Field): boolean =>
  type === 'bool' || type === 'int32' || type === 'int64'

/** Whether an occurrence of a list of numbers holds several of them. */
export const isPacked = (field: Field, { type }: Occurrence): boolean =>
  field.repeated === true && type === lengthType && isNumber(field)

/** The numbers of a packed list. */
export function* unpacked({ bytes, start, end }: Occurrence): Generator<Occurrence> {
  for (let at = start; at < end;) {
    const next = varintEnd(bytes, at, end)
    if (next < 0) throw new MalformedBody('a number does not end')
    yield { bytes, type: varintType, start: at, end: next }
    at = next
  }
}

/** The values of a map's entries by key; of equal keys the last. */
export const entriesOf = (pieces: readonly Occurrence[], field: Field): Map<string, Occurrence> =>
  new Map(occurrences(pieces, field).map((entry) => readEntry(entry, field)))

/** Key and value of one entry of a map. */
export function readEntry(entry: Occurrence, field: Field): [key: string, value: Occurrence] {
  let key = ''
  let value = missing(field)
  for (const fields = fieldsIn(entry); fields.next();) {
    if (fields.number === 1) key = textOf(occurrenceOf(fields))
    else if (fields.number === 2) value = occurrenceOf(fields)
  }
  return [key, value]
}

const zero: Occurrence = { bytes: Buffer.of(0), type: varintType, start: 0, end: 1 }
const nothing = whole(Buffer.alloc(0))

/** The value of a missing field. */
export const missing = (field: Field): Occurrence => (isNumber(field) ? zero : nothing)

/** The value as text. Throws `MalformedBody` for a value of another type. */
export function textOf(piece: Occurrence, encoding: 'utf8' | 'base64' = 'utf8'): string {
  checkLength(piece)
  return piece.bytes.toString(encoding, piece.start, piece.end)
}

/** The value as a signed number. Throws `MalformedBody` for a value of another type. */
export function numberOf({ bytes, type, start }: Occurrence): number {
  if (type !== varintType) throw new MalformedBody('bytes where a number belongs')
  return signedVarint(bytes, start)
}

function checkLength({ type }: Occurrence): void {
  if (type !== lengthType) throw new MalformedBody('a number where bytes belong')
}

/** The element of a list; `undefined` beyond its end. */
export function elementOf(
  elements: readonly Occurrence[],
  index: string | number | undefined,
): Occurrence | undefined {
  if (typeof index !== 'number') throw new PathError(`no element ${index} in a list`)
  return elements[index]
}
