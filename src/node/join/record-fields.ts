/** The parts of a record in JSON that nodehub keeps of its changes to a node. */
import { isList, isObject, type Json, type JsonObject } from '../../api/kube/json.ts'

/** A record is malformed: the message says how, as part of a sentence. */
export class MalformedRecord extends Error {
  readonly code = 'NOT_UNDERSTOOD'
}

/** A SHA-256 in hexadecimal digits. */
export const checksum = /^[0-9a-f]{64}$/

/** Throws `MalformedRecord` for anything but an object, which is called `name` in the message. */
export function objectOf(value: Json | undefined, name: string): JsonObject {
  if (!isObject(value)) throw new MalformedRecord(`${name} is no object`)
  return value
}

/** The same for a list. */
export function listOf(value: Json | undefined, name: string): readonly Json[] {
  if (!isList(value)) throw new MalformedRecord(`${name} is no list`)
  return value
}

/** The same for a text of this form. */
export function textOf(value: Json | undefined, name: string, form: RegExp): string {
  if (typeof value !== 'string' || !form.test(value)) {
    throw new MalformedRecord(`${name} is not as nodehub writes it`)
  }
  return value
}

/** The same for a whole number from 0 to `most`. */
export function numberOf(value: Json | undefined, name: string, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > most) {
    throw new MalformedRecord(`${name} is not as nodehub writes it`)
  }
  return value
}

/** The same for an absolute path; a zero byte is in none. */
export const pathOf = (value: Json | undefined, name: string): string =>
  // oxlint-disable-next-line no-control-regex
  textOf(value, name, /^\/[^\0]*$/)

/** The JSON of a record. Throws `MalformedRecord`, whose message has none of the text. */
export function parsedRecord(text: string): Json {
  if (text.trim() === '') throw new MalformedRecord('it is empty')
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    // The parser's other messages contain the text itself.
    const where = /\(line \d+ column \d+\)/.exec(String(cause))?.[0]
    throw new MalformedRecord(`it is no JSON${where ? ` ${where}` : ''}`)
  }
}
