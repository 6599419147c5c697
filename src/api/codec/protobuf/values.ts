import { PathError } from '../element.ts'
import type { Field, FieldType } from '../schema/schema.ts'
import { Fields, lengthType, varintType } from './wire.ts'

/** One occurrence of a field: the position of its value. */
export interface Occurrence {
  readonly bytes: Buffer
  readonly type: number
  readonly start: number
  readonly end: number
}

const packable = new Set<FieldType>(['bool', 'int32', 'int64'])

/**
 * The occurrences of a field in a message, which may itself be in several pieces; packed numbers
 * are separated.
 */
export function occurrences(pieces: readonly Occurrence[], field: Field): Occurrence[] {
  const found: Occurrence[] = []
  for (const { bytes, start, end } of pieces) {
    for (const fields = new Fields(bytes, start, end); fields.next();) {
      if (fields.number !== field.number) continue
      found.push(...elementsIn(fields, field))
    }
  }
  return found
}

/** The values in one occurrence of a field: one, or the packed numbers. */
export function elementsIn(
  { bytes, type, valueStart: start, valueEnd: end }: Fields,
  field: Field,
): Occurrence[] {
  const one = { bytes, type, start, end }
  return field.repeated && type === lengthType && packable.has(field.type) ? unpacked(one) : [one]
}

function unpacked({ bytes, start, end }: Occurrence): Occurrence[] {
  const found: Occurrence[] = []
  let from = start
  for (let at = start; at < end; at++) {
    if ((bytes[at] as number) >= 0x80) continue
    found.push({ bytes, type: varintType, start: from, end: at + 1 })
    from = at + 1
  }
  return found
}

/** The values of a map's entries by key; of equal keys the last. */
export function entriesOf(pieces: readonly Occurrence[], field: Field): Map<string, Occurrence> {
  const entries = new Map<string, Occurrence>()
  for (const { bytes, start, end } of occurrences(pieces, field)) {
    let key = ''
    let value: Occurrence = { bytes, type: lengthType, start, end: start }
    for (const fields = new Fields(bytes, start, end); fields.next();) {
      const { number, type, valueStart, valueEnd } = fields
      if (number === 1) key = fields.string
      else if (number === 2) value = { bytes, type, start: valueStart, end: valueEnd }
    }
    entries.set(key, value)
  }
  return entries
}

/** The value as text. */
export const textOf = ({ bytes, start, end }: Occurrence): string =>
  bytes.toString('utf8', start, end)

/** The element of a list; `undefined` beyond its end. */
export function elementOf(
  elements: readonly Occurrence[],
  index: string | number | undefined,
): Occurrence | undefined {
  if (typeof index !== 'number') throw new PathError(`no element ${index} in a list`)
  return elements[index]
}
