import { MalformedBody } from '../../malformed-body.ts'
import { PathError } from '../../element.ts'

/**
 * A time in protobuf. `undefined` stands for Go's zero time: an empty message, and `null` in JSON.
 */
export interface Timestamp {
  /** Since 1970, negative before. */
  readonly seconds: number
  readonly nanos: number
}

const zeroTime = -62_135_596_800
const lastSecond = 253_402_300_799

const rfc3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/

/** Reads RFC 3339 text. Throws a PathError for any other. */
export function parseTime(text: string): Timestamp | undefined {
  const [, moment, fraction = '', zone] = rfc3339.exec(text) ?? []
  const seconds = moment && zone ? Date.parse(moment + zone) / 1000 : Number.NaN
  if (Number.isNaN(seconds)) throw new PathError(`${JSON.stringify(text)} is not a time`)
  const nanos = Number(fraction.padEnd(9, '0'))
  return seconds === zeroTime && nanos === 0 ? undefined : { seconds, nanos }
}

/**
 * The text of a time: six decimals for a MicroTime, none for a Time. Throws `MalformedBody` outside
 * of the years 1 to 9999.
 */
export function formatTime({ seconds, nanos }: Timestamp, micro: boolean): string | null {
  if (!(seconds >= zeroTime && seconds <= lastSecond))
    throw new MalformedBody('a time out of range')
  if (seconds === zeroTime && (!micro || nanos === 0)) return null
  const text = new Date(seconds * 1000).toISOString().slice(0, 19)
  const micros = String(Math.trunc(nanos / 1000)).padStart(6, '0')
  return micro ? `${text}.${micros}Z` : `${text}Z`
}
