import { readFields } from './wire-fields.ts'
import type { GVK } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { toProtobuf } from '../../src/sandbox/protobuf.ts'

/** An object as it stands in a list in this encoding. */
export function encoded(encoding: Encoding, gvk: GVK, object: JsonObject): ApiObject {
  const { namespace, name, uid, resourceVersion } = {
    namespace: '',
    name: '',
    uid: '',
    resourceVersion: '',
    ...(object['metadata'] as JsonObject),
  }
  const known = { namespace, name, uid, resourceVersion }
  if (encoding === 'json') return { ...known, bytes: Buffer.from(JSON.stringify(object)) }
  // Without the envelope, which only single objects have.
  const fields = [...readFields(toProtobuf(gvk, object).subarray(4))]
  const bytes = fields.find(({ number }) => number === 2)?.value as Buffer
  return { ...known, bytes: Buffer.from(bytes) }
}
