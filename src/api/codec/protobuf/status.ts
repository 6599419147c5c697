import type { Status, StatusCause, StatusDetails } from '../../kube/status.ts'
import { statusOf } from '../status.ts'
import { bytesField, Fields, stringField, varintField } from './wire.ts'

// apimachinery pkg/apis/meta/v1/generated.proto; Go writes fields that are no pointers even when
// they are empty.

/** The message of a Status. */
export function writeStatus(status: Status): Buffer {
  const { metadata, details } = status
  return Buffer.concat([
    bytesField(1, listMeta('', metadata.continue ?? '')),
    stringField(2, status.status),
    stringField(3, status.message ?? ''),
    stringField(4, status.reason ?? ''),
    ...(details ? [bytesField(5, writeDetails(details))] : []),
    varintField(6, status.code),
  ])
}

/** The message of a ListMeta. */
export const listMeta = (resourceVersion: string, token: string): Buffer =>
  Buffer.concat([stringField(1, ''), stringField(2, resourceVersion), stringField(3, token)])

const writeDetails = (details: StatusDetails): Buffer =>
  Buffer.concat([
    stringField(1, details.name ?? ''),
    stringField(2, details.group ?? ''),
    stringField(3, details.kind ?? ''),
    ...(details.causes ?? []).map((cause) => bytesField(4, writeCause(cause))),
    varintField(5, details.retryAfterSeconds ?? 0),
    stringField(6, details.uid ?? ''),
  ])

const writeCause = ({ reason, message, field }: StatusCause): Buffer =>
  Buffer.concat([
    stringField(1, reason ?? ''),
    stringField(2, message ?? ''),
    stringField(3, field ?? ''),
  ])

/** The Status a message holds. */
export function readStatus(bytes: Buffer): Status {
  const value: Record<string, string | number | object> = {}
  for (const fields = new Fields(bytes); fields.next();) {
    if (fields.number === 1) value['metadata'] = { continue: texts(fields.value)[3] ?? '' }
    else if (fields.number === 2) value['status'] = fields.string
    else if (fields.number === 3) value['message'] = fields.string
    else if (fields.number === 4) value['reason'] = fields.string
    else if (fields.number === 5) value['details'] = readDetails(fields.value)
    else if (fields.number === 6) value['code'] = fields.varint
  }
  return statusOf(value as Parameters<typeof statusOf>[0])
}

function readDetails(bytes: Buffer): object {
  const [, name, group, kind, , , uid] = texts(bytes)
  const causes: object[] = []
  let retryAfterSeconds = 0
  for (const fields = new Fields(bytes); fields.next();) {
    if (fields.number === 5) retryAfterSeconds = fields.varint
    if (fields.number !== 4) continue
    const [, reason, message, field] = texts(fields.value)
    causes.push({ reason, message, field })
  }
  return { name, group, kind, uid, ...(causes.length > 0 && { causes }), retryAfterSeconds }
}

/** The string fields of a message by their numbers. */
function texts(bytes: Buffer): (string | undefined)[] {
  const found: (string | undefined)[] = []
  for (const fields = new Fields(bytes); fields.next();) {
    if (fields.number < 16) found[fields.number] = fields.string
  }
  return found
}
