import { qualifiedResource } from '../api/kube/gvk.ts'
import { isSubdomain } from '../api/kube/names.ts'
import { invalid, StatusError } from '../api/kube/status.ts'
import type { Kind } from './kinds.ts'

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/** Throws a StatusError 422 for a name that no object can have, worded as apimachinery words it. */
export function checkName({ kind, gvr: { group } }: Kind, name: string): void {
  if (isSubdomain(name)) return
  const field = 'metadata.name'
  const [reason, message] =
    name === ''
      ? ['FieldValueRequired', 'Required value: name or generateName is required']
      : ['FieldValueInvalid', `Invalid value: ${JSON.stringify(name)}: ${subdomain}`]
  const text = `${qualifiedResource({ group, resource: kind })} "${name}" is invalid: ${field}: ${message}`
  throw new StatusError(
    invalid(text, {
      ...(name !== '' && { name }),
      ...(group !== '' && { group }),
      kind,
      causes: [{ reason, message, field }],
    }),
  )
}
