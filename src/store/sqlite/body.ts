import { crc32 } from 'node:zlib'
import type { ApiObject } from '../../kube/object.ts'
import type { ScopeKey } from './messages.ts'
import { isSealed, type Seal } from './seal.ts'

type Named = Omit<ApiObject, 'bytes'> & { readonly size: number }

/** How a body lies in its row. The checksum of a sealed one is its seal. */
export interface Body {
  readonly checksum: number
  readonly bytes: Uint8Array
}

const placeOf = (scope: ScopeKey, { namespace, name, uid, resourceVersion, size }: Named): string =>
  JSON.stringify([...scope, namespace, name, uid, resourceVersion, size])

/** Rows are used again for other objects: the checksum is of whose bytes they are, too, and of how many, which others than they tell. */
const checksumOf = (
  bytes: Uint8Array,
  { namespace, name, uid, resourceVersion, size }: Named,
): number =>
  // As a number with a sign it takes four bytes of its row, whatever it is.
  crc32(bytes, crc32(`${namespace}\0${name}\0${uid}\0${resourceVersion}\0${size}`)) | 0

/**
 * Bytes that a body of `size` is given, at most an eighth more: where the next version of an object has the same room, its row is
 * overwritten where it lies, and no page is freed or taken.
 */
export function roomFor(size: number): number {
  const granule = Math.max(32, 1 << Math.max(0, 28 - Math.clz32(size)))
  return Math.ceil(size / granule) * granule
}

export function toBody(seal: Seal, scope: ScopeKey, object: ApiObject): Body {
  const size = object.bytes.byteLength
  const bytes = Buffer.alloc(roomFor(size))
  bytes.set(object.bytes)
  const named = { ...object, size }
  return isSealed(scope)
    ? { checksum: 0, bytes: seal.close(bytes, placeOf(scope, named)) }
    : { checksum: checksumOf(bytes, named), bytes }
}

/** The bytes as they were given; `undefined` when the row does not hold them any more. */
export function fromBody(
  seal: Seal,
  scope: ScopeKey,
  named: Named,
  { checksum, bytes }: Body,
): Uint8Array | undefined {
  const whole = isSealed(scope)
    ? seal.open(bytes, placeOf(scope, named))
    : checksumOf(bytes, named) === checksum
      ? bytes
      : undefined
  return whole && whole.byteLength >= named.size ? whole.subarray(0, named.size) : undefined
}
