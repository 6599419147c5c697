import { asBuffer } from '../../base/bytes.ts'
import { openEnvelope } from '../../api/codec/protobuf/envelope.ts'
import { readStatus, statusOf } from '../../api/codec/protobuf/status.ts'
import { MalformedBody, parsedJson } from '../../api/codec/malformed-body.ts'
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
      : statusOf(parsedJson(body.toString()))
  } catch (error) {
    if (error instanceof MalformedBody) return undefined
    throw error
  }
}
