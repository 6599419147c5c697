import type { JsonObject } from '../../kube/json.ts'
import type { Status } from '../../kube/status.ts'
import { statusSchema } from '../schema/schema.ts'
import { statusOf } from '../status.ts'
import { MessageReader } from './message/decode.ts'
import { messageBytes } from './message/encode.ts'
import { whole } from './values.ts'

/** The message of a Status. */
export const writeStatus = (status: Status): Buffer =>
  messageBytes(statusSchema, status as unknown as JsonObject)

/** The Status a message holds. Throws `MalformedBody`. */
export const readStatus = (bytes: Buffer): Status =>
  statusOf(new MessageReader().message(statusSchema, [whole(bytes)]))
