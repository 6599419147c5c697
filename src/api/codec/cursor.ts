import type { GVK } from '../kube/gvk.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import type { Cursor } from './element.ts'
import { JsonCursor } from './json/cursor.ts'
import { ProtobufCursor } from './protobuf/cursor.ts'

export type { Cursor, Element, Path } from './element.ts'

/** A cursor over one object. `gvk` is the kind of the object, not of its list. */
export const cursorOf = (encoding: Encoding, gvk: GVK, object: ApiObject): Cursor =>
  encoding === 'json' ? new JsonCursor(gvk, object) : new ProtobufCursor(gvk, object)
