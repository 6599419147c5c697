import { isList, isObject, type Json, type JsonObject } from '../kube/json.ts'
import { valueAt } from '../kube/json-at.ts'
import type { Status, StatusCause, StatusDetails, StatusReason } from '../kube/status.ts'

/**
 * The Status in `value`, with known fields only, in the API server's order. Any other value becomes
 * a failure 500.
 */
export function statusOf(value: Json): Status {
  const from: JsonObject = isObject(value) ? value : {}
  const details = from['details']
  const reason = from['reason']
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: texts({ continue: valueAt(from, 'metadata', 'continue') }),
    status: from['status'] === 'Success' ? 'Success' : 'Failure',
    ...texts({ message: from['message'] }),
    ...(typeof reason === 'string' && reason !== '' && { reason: reason as StatusReason }),
    ...(isObject(details) && { details: detailsOf(details) }),
    code: isInt32(from['code']) ? from['code'] : 500,
  }
}

function detailsOf(from: JsonObject): StatusDetails {
  const causes = from['causes']
  const seconds = from['retryAfterSeconds']
  return {
    ...texts({
      name: from['name'],
      group: from['group'],
      kind: from['kind'],
      uid: from['uid'],
    }),
    ...(isList(causes) && { causes: causes.filter(isObject).map(causeOf) }),
    ...(isInt32(seconds) && seconds !== 0 && { retryAfterSeconds: seconds }),
  }
}

const causeOf = ({ reason, message, field }: JsonObject): StatusCause =>
  texts({ reason, message, field })

/** What Go holds in an int32. */
const isInt32 = (value: Json | undefined): value is number =>
  typeof value === 'number' && (value | 0) === value

/** The fields whose value is a non-empty string. */
function texts<Name extends string>(
  fields: Record<Name, Json | undefined>,
): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {}
  for (const name in fields) {
    const value: Json | undefined = fields[name]
    if (typeof value === 'string' && value !== '') found[name] = value
  }
  return found
}
