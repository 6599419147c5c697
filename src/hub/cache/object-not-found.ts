import { asBuffer } from '../../base/bytes.ts'
import { openEnvelope } from '../../api/codec/protobuf/envelope.ts'
import { readStatus, statusOf } from '../../api/codec/protobuf/status.ts'
import { MalformedBody, parsedJson } from '../../api/codec/malformed-body.ts'
import type { Encoding } from '../../api/kube/media-type.ts'

/**
 * Whether the body of a 404 states that the object of this name does not exist. A server also
 * answers 404 for a resource that it does not serve (yet), which states nothing about its objects.
 */
export function isObjectNotFound(encoding: Encoding, body: Uint8Array, name: string): boolean {
  const bytes = asBuffer(body)
  try {
    const status =
      encoding === 'protobuf'
        ? readStatus(openEnvelope(bytes).raw)
        : statusOf(parsedJson(bytes.toString()))
    return status.reason === 'NotFound' && status.details?.name === name
  } catch (cause) {
    if (cause instanceof MalformedBody) return false
    throw cause
  }
}
