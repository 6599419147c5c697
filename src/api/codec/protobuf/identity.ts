import type { ApiObject } from '../../kube/object.ts'
import { Fields, lengthType } from './wire.ts'

/** The field number of ObjectMeta in every top-level object, and of ListMeta in every list. */
export const metadataNumber = 1

/**
 * The object whose message is `bytes`. Occurrences of its metadata are merged; the last of each
 * field wins.
 */
export function apiObject(bytes: Buffer): ApiObject {
  let namespace = ''
  let name = ''
  let uid = ''
  let resourceVersion = ''
  for (const fields = new Fields(bytes); fields.next();) {
    if (fields.number !== metadataNumber || fields.type !== lengthType) continue
    for (const meta = new Fields(bytes, fields.valueStart, fields.valueEnd); meta.next();) {
      if (meta.number === 1) name = meta.string
      else if (meta.number === 3) namespace = meta.string
      else if (meta.number === 5) uid = meta.string
      else if (meta.number === 6) resourceVersion = meta.string
    }
  }
  return { namespace, name, uid, resourceVersion, bytes }
}
