import { isObject, type Json, type JsonObject } from '../../kube/json.ts'
import type { Status } from '../../kube/status.ts'
import { MalformedBody } from '../malformed-body.ts'
import { statusSchema } from '../schema/schema.ts'
import { MessageReader } from './message/decode.ts'
import { messageBytes } from './message/encode.ts'
import { PathError } from '../element.ts'
import { whole } from './values.ts'

/** The message of a Status. */
export const writeStatus = (status: Status): Buffer =>
  messageBytes(statusSchema, status as unknown as JsonObject)

/** The Status a message holds. Throws `MalformedBody`. */
export const readStatus = (bytes: Buffer): Status =>
  completed(new MessageReader().message(statusSchema, [whole(bytes)]))

/**
 * The Status in `value`, with known fields only, in the API server's order. A value that protobuf
 * cannot hold becomes a failure 500.
 */
export function statusOf(value: Json): Status {
  try {
    return readStatus(messageBytes(statusSchema, isObject(value) ? value : {}))
  } catch (cause) {
    if (cause instanceof PathError || cause instanceof MalformedBody) return completed({})
    throw cause
  }
}

const completed = (read: Partial<Status>): Status => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  ...read,
  status: read.status === 'Success' ? 'Success' : 'Failure',
  code: read.code ?? 500,
})
