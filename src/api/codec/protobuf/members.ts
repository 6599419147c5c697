import type { GVK } from '../../kube/gvk.ts'
import type { Json, JsonObject } from '../../kube/json.ts'
import { withMessage, replaced } from './edit.ts'
import { fieldNamed, knownSchema, messageOf } from './field-path.ts'
import { MessageReader } from './message/decode.ts'
import { writeField } from './message/encode.ts'
import { BackwardWriter } from './message/writer.ts'
import { whole } from './values.ts'

/** The object in JSON, without fields that the schema lacks. Throws `MalformedBody`. */
export const readMembers = (gvk: GVK, bytes: Buffer): JsonObject =>
  new MessageReader().message(knownSchema(gvk), [whole(bytes)])

/**
 * The object with one member of a member replaced; `undefined` removes it. All else keeps its
 * bytes. A member that the schema lacks changes nothing. Throws a `PathError` for a value that
 * the member cannot have.
 */
export function withMember(
  gvk: GVK,
  bytes: Buffer,
  [parent, member]: readonly [string, string],
  value: Json | undefined,
): Buffer {
  const outer = fieldNamed(knownSchema(gvk), parent).field
  const known = messageOf(outer).fields
  const field = Object.hasOwn(known, member) ? known[member] : undefined
  if (!field) return bytes
  const out = new BackwardWriter()
  writeField(out, field, value ?? undefined)
  const written = out.finish()
  return withMessage(bytes, outer, (inner) => replaced(inner, field, written))
}
