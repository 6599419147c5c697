import { crc32 } from 'node:zlib'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { ScopeKey } from './address.ts'
import { isSealed, type Seal } from './seal.ts'

type Named = Omit<ApiObject, 'bytes'> & { readonly size: number }

/** The contents of a row of `body`. A sealed body is checked by its seal; its checksum is 0. */
export interface Body {
  readonly checksum: number
  readonly bytes: Uint8Array
}

/**
 * The fields that the checksum covers besides the bytes: the object and the size, because rows are
 * used again for other objects.
 */
const fieldsOf = ({ namespace, name, uid, resourceVersion, size }: Named): readonly Field[] => [
  namespace,
  name,
  uid,
  resourceVersion,
  size,
]
type Field = string | number

/** The fields of the first release, without the size. */
const oldFieldsOf = (named: Named): readonly Field[] => fieldsOf(named).slice(0, -1)

const placeOf = (scope: ScopeKey, fields: readonly Field[]): string =>
  JSON.stringify([...scope, ...fields])

const checksumOf = (bytes: Uint8Array, fields: readonly Field[]): number =>
  // A signed number takes four bytes of its row.
  crc32(bytes, crc32(fields.join('\0'))) | 0

/**
 * The bytes reserved for a body of `size`, at most an eighth more: the next version of an object
 * then mostly fits into the same row, and no page is freed or allocated.
 */
export function roomFor(size: number): number {
  const granule = Math.max(32, 1 << Math.max(0, 28 - Math.clz32(size)))
  return Math.ceil(size / granule) * granule
}

export function toBody(seal: Seal, scope: ScopeKey, object: ApiObject): Body {
  const size = object.bytes.byteLength
  const bytes = Buffer.alloc(roomFor(size))
  bytes.set(object.bytes)
  const fields = fieldsOf({ ...object, size })
  return isSealed(scope)
    ? { checksum: 0, bytes: seal.close(bytes, placeOf(scope, fields)) }
    : { checksum: checksumOf(bytes, fields), bytes }
}

/** The object's bytes; `undefined`: the row does not hold them any more. */
export function fromBody(
  seal: Seal,
  scope: ScopeKey,
  named: Named,
  body: Body,
): Uint8Array | undefined {
  const whole =
    wholeBytes(seal, scope, fieldsOf(named), body) ??
    wholeBytes(seal, scope, oldFieldsOf(named), body)
  return whole && whole.byteLength >= named.size ? whole.subarray(0, named.size) : undefined
}

function wholeBytes(
  seal: Seal,
  scope: ScopeKey,
  fields: readonly Field[],
  { checksum, bytes }: Body,
): Uint8Array | undefined {
  if (isSealed(scope)) return seal.open(bytes, placeOf(scope, fields))
  return checksumOf(bytes, fields) === checksum ? bytes : undefined
}
