import type { Json } from '../../kube/json.ts'
import type { Path } from '../element.ts'
import { MalformedBody } from '../malformed-body.ts'
import type { Field, MessageSchema } from '../schema/schema.ts'
import { checkDecodable } from '../decode-limit.ts'
import { fieldNamed, messageOf } from './field-path.ts'
import { MessageReader } from './message/decode.ts'
import { ProtobufError } from './message/error.ts'
import { readPacked } from './message/reader.ts'
import { elementOf, entriesOf, occurrences, type Occurrence } from './values.ts'
import { varintType } from './wire.ts'

/** The JSON value at a path; `undefined` for a missing value and null. See `Cursor`. */
export function decodedAt(
  schema: MessageSchema,
  pieces: readonly Occurrence[],
  [name, ...rest]: Path,
): Json | undefined {
  const { through, field } = fieldNamed(schema, name)
  const inside = through.reduce<readonly Occurrence[]>(
    (outer, embedded) => occurrences(outer, embedded),
    pieces,
  )
  const values = occurrences(inside, field)
  if (rest.length === 0) return decoded(field, values)
  if (!field.map && !field.repeated) return further(field, values, rest)
  const [step, ...deeper] = rest
  const one = field.map ? entriesOf(inside, field).get(String(step)) : elementOf(values, step)
  return one && further(elementIn(field), [one], deeper)
}

function further(field: Field, pieces: readonly Occurrence[], path: Path): Json | undefined {
  if (path.length === 0) return decoded(field, pieces)
  const found = decodedAt(messageOf(field), pieces, path)
  return pieces.length === 0 ? undefined : found
}

/** The field of one element of a list or map, which JSON always shows. */
function elementIn({ number, type, message }: Field): Field {
  return { number, type, ...(message && { message }), always: true, shown: true }
}

function decoded(field: Field, values: readonly Occurrence[]): Json | undefined {
  checkDecodable(values.reduce((sum, { start, end }) => sum + end - start, 0))
  try {
    return new MessageReader().field(field, values.map(wireValue)) ?? undefined
  } catch (cause) {
    if (!(cause instanceof ProtobufError)) throw cause
    throw new MalformedBody(cause.message, { cause })
  }
}

function wireValue({ bytes, type, start, end }: Occurrence): number | Buffer {
  const value = bytes.subarray(start, end)
  return type === varintType ? (readPacked(value).next().value ?? 0) : value
}
