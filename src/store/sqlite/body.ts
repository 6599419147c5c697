import { crc32 } from 'node:zlib'
import type { ApiObject } from '../../kube/object.ts'
import type { ScopeKey } from './messages.ts'
import { isSealed, type Seal } from './seal.ts'

type Named = Omit<ApiObject, 'bytes'>

/** How a body lies in its row. The checksum of a sealed one is its seal. */
export interface Body {
  readonly checksum: number
  readonly bytes: Uint8Array
}

const placeOf = (scope: ScopeKey, { namespace, name, uid, resourceVersion }: Named): string =>
  JSON.stringify([...scope, namespace, name, uid, resourceVersion])

export const toBody = (seal: Seal, scope: ScopeKey, object: ApiObject): Body =>
  isSealed(scope)
    ? { checksum: 0, bytes: seal.close(object.bytes, placeOf(scope, object)) }
    : { checksum: crc32(object.bytes), bytes: object.bytes }

/** The bytes as they were given; `undefined` when the row does not hold them any more. */
export function fromBody(
  seal: Seal,
  scope: ScopeKey,
  named: Named,
  { checksum, bytes }: Body,
): Uint8Array | undefined {
  if (isSealed(scope)) return seal.open(bytes, placeOf(scope, named))
  return crc32(bytes) === checksum ? bytes : undefined
}
