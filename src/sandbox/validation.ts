import { qualifiedResource } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { listAt, optionalTextAt, textAt } from '../api/kube/json-at.ts'
import { invalid, StatusError, type Status, type StatusCause } from '../api/kube/status.ts'
import type { Kind } from './kinds.ts'

/** 422 for one object, worded as apimachinery pkg/api/errors words it. */
const invalidObject = (kind: Kind, name: string, causes: readonly StatusCause[]): Status =>
  invalidNamed(kind, kind.kind, name, causes)

/** The same, where the server names the resource instead of the kind. */
export const invalidResource = (kind: Kind, name: string, causes: readonly StatusCause[]): Status =>
  invalidNamed(kind, kind.gvr.resource, name, causes)

function invalidNamed(
  { gvr: { group } }: Kind,
  called: string,
  name: string,
  causes: readonly StatusCause[],
): Status {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`)
  const text = texts.length === 1 ? texts.join('') : `[${texts.join(', ')}]`
  const qualified = qualifiedResource({ group, resource: called })
  return invalid(`${qualified} "${name}" is invalid: ${text}`, {
    ...(name !== '' && { name }),
    ...(group !== '' && { group }),
    kind: called,
    causes,
  })
}

const required = (field: string, detail?: string): StatusCause => ({
  reason: 'FieldValueRequired',
  message: detail === undefined ? 'Required value' : `Required value: ${detail}`,
  field,
})

export const invalidValue = (field: string, shown: string, detail: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${shown}: ${detail}`,
  field,
})

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/**
 * Throws a StatusError 422 for the mistakes that clients make: in names, and pods without
 * containers.
 */
export function validate(kind: Kind, object: JsonObject): void {
  const name = textAt(object, 'metadata', 'name')
  const flaws = [...nameFlaws(name), ...(kindFlaws[kind.kind]?.(object) ?? [])]
  if (flaws.length > 0) throw new StatusError(invalidObject(kind, name, flaws))
}

function nameFlaws(name: string): StatusCause[] {
  if (name === '') return [required('metadata.name', 'name or generateName is required')]
  if (
    name.length <= 253 &&
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
  ) {
    return []
  }
  return [invalidValue('metadata.name', JSON.stringify(name), subdomain)]
}

const kindFlaws: Record<string, (object: JsonObject) => StatusCause[]> = {
  Pod: (pod) => {
    const containers = listAt(pod, 'spec', 'containers')
    if (containers.length === 0) return [required('spec.containers')]
    return containers.flatMap((container, at) => [
      ...(optionalTextAt(container, 'name') ? [] : [required(`spec.containers[${at}].name`)]),
      ...(optionalTextAt(container, 'image') ? [] : [required(`spec.containers[${at}].image`)]),
    ])
  },
  Service: (service) =>
    listAt(service, 'spec', 'ports').length > 0 ||
    optionalTextAt(service, 'spec', 'type') === 'ExternalName' ||
    optionalTextAt(service, 'spec', 'clusterIP') === 'None'
      ? []
      : [required('spec.ports')],
}
