import { asBuffer } from '../../base/bytes.ts'
import { openEnvelope } from '../../api/codec/protobuf/envelope.ts'
import { readStatus } from '../../api/codec/protobuf/status.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { statusOf } from '../../api/codec/status.ts'
import type { Json } from '../../api/kube/json.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { Status } from '../../api/kube/status.ts'

/**
 * Whether the body of a 404 states that the object of this name does not exist. A server also
 * answers 404 for a resource that it does not serve (yet), which states nothing about its objects.
 */
export function isObjectNotFound(encoding: Encoding, body: Uint8Array, name: string): boolean {
  const status = readAnswer(encoding, asBuffer(body))
  return status?.reason === 'NotFound' && status.details?.name === name
}

function readAnswer(encoding: Encoding, body: Buffer): Status | undefined {
  try {
    return encoding === 'protobuf'
      ? readStatus(openEnvelope(body).raw)
      : statusOf(JSON.parse(body.toString()) as Json)
  } catch (error) {
    if (error instanceof MalformedBody || error instanceof SyntaxError) return undefined
    throw error
  }
}
