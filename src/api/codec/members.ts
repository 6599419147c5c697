import { asBuffer } from '../../base/bytes.ts'
import type { GVK } from '../kube/gvk.ts'
import type { Json, JsonObject } from '../kube/json.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { EditValue } from './change.ts'
import { editJson } from './json/edit.ts'
import { parsedJson } from './malformed-body.ts'
import { readMembers, withMember } from './protobuf/members.ts'

/** A member of a member, such as `status.conditions`, and its new value; `undefined` removes it. */
export interface MemberChange {
  readonly path: readonly [string, string]
  readonly value: Json | undefined
}

/**
 * The whole object in JSON; in protobuf without fields that the schema lacks. Throws
 * `MalformedBody`.
 */
export const jsonOfObject = (encoding: Encoding, gvk: GVK, { bytes }: ApiObject): JsonObject =>
  encoding === 'json'
    ? (parsedJson(asBuffer(bytes).toString()) as JsonObject)
    : readMembers(gvk, asBuffer(bytes))

/**
 * The object with these members replaced and all other bytes unchanged. In protobuf, members that
 * the schema lacks stay as they are, and a value that does not fit throws a `PathError`.
 */
export function withMembers(
  encoding: Encoding,
  gvk: GVK,
  object: ApiObject,
  changes: readonly MemberChange[],
): ApiObject {
  let bytes = asBuffer(object.bytes)
  for (const { path, value } of changes) {
    bytes =
      encoding === 'json'
        ? editJson(
            bytes,
            value === undefined
              ? { op: 'remove', path }
              : { op: 'set', path, value: asEdit(value) },
          )
        : withMember(gvk, bytes, path, value)
  }
  return { ...object, bytes }
}

/** In JSON an edit may write null, though no path leads to it. */
const asEdit = (value: Json): EditValue => value as EditValue
