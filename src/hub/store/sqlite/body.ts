import { crc32 } from 'node:zlib'
import type { ApiObject } from '../../../api/kube/object.ts'
import type { ScopeKey } from './address.ts'
import { isSealed, type Seal } from './seal.ts'

type Named = Omit<ApiObject, 'bytes'> & { readonly size: number }

/** How a body lies in its row. The checksum of a sealed one is its seal. */
export interface Body {
  readonly checksum: number
  readonly bytes: Uint8Array
}

/**
 * Whose body it is, and of how many bytes: rows are used again for other objects, and others than
 * the row tell its size.
 */
const fieldsOf = ({ namespace, name, uid, resourceVersion, size }: Named): readonly Field[] => [
  namespace,
  name,
  uid,
  resourceVersion,
  size,
]
type Field = string | number

/** As the first release wrote bodies, which said nothing of the size. */
const oldFieldsOf = (named: Named): readonly Field[] => fieldsOf(named).slice(0, -1)

const placeOf = (scope: ScopeKey, fields: readonly Field[]): string =>
  JSON.stringify([...scope, ...fields])

const checksumOf = (bytes: Uint8Array, fields: readonly Field[]): number =>
  // As a number with a sign it takes four bytes of its row, whatever it is.
  crc32(bytes, crc32(fields.join('\0'))) | 0

/**
 * Bytes that a body of `size` is given, at most an eighth more: where the next version of an object
 * has the same room, its row is overwritten where it lies, and no page is freed or taken.
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

/** The bytes as they were given; `undefined` when the row does not hold them any more. */
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
