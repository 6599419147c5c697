import { badRequest, StatusError } from '../kube/status.ts'
import {
  MalformedSelector,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from '../kube/selectors.ts'
import type { Kind } from './kinds.ts'
import { listAt, at, textAt, type KubeObject } from './object.ts'
import { labelsOf } from './storage.ts'

/** What of a kind a request is about. */
export interface Selection {
  /** Whether anything but the namespace narrows it. */
  readonly selective: boolean
  selects(object: KubeObject): boolean
}

/** Throws a StatusError for selectors that cannot be read, or that name fields the kind cannot be selected by. */
export function selectionOf(
  kind: Kind,
  namespace: string | undefined,
  query: URLSearchParams,
): Selection {
  const labelText = query.get('labelSelector') ?? ''
  const fieldText = query.get('fieldSelector') ?? ''
  const { labels, fields } = parse(labelText, fieldText)
  for (const { field } of fields) checkField(kind, field)
  return {
    selective: labels.length > 0 || fields.length > 0,
    selects: (object) =>
      (namespace === undefined || object.metadata.namespace === namespace) &&
      matchesLabels(labels, labelsOf(object)) &&
      matchesFields(fields, (path) => readField(object, path)),
  }
}

function parse(
  labelText: string,
  fieldText: string,
): {
  labels: ReturnType<typeof parseLabelSelector>
  fields: ReturnType<typeof parseFieldSelector>
} {
  try {
    return { labels: parseLabelSelector(labelText), fields: parseFieldSelector(fieldText) }
  } catch (cause) {
    if (cause instanceof MalformedSelector) {
      throw new StatusError(badRequest(cause.message), { cause })
    }
    throw cause
  }
}

function checkField(kind: Kind, field: string): void {
  if (field === 'metadata.name') return
  if (field === 'metadata.namespace' && (kind.namespaced || !kind.custom)) return
  if (kind.fields.includes(field)) return
  // Kinds without fields of their own fall to apimachinery pkg/runtime/conversion.go, which words it otherwise.
  const message =
    kind.fields.length > 0 || kind.custom
      ? `field label not supported: ${field}`
      : `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
  throw new StatusError(badRequest(message))
}

function readField(object: KubeObject, path: string): string | undefined {
  if (path === 'spec.unschedulable' || path === 'spec.hostNetwork') {
    return String(at(object, ...path.split('.')) === true)
  }
  if (path === 'status.podIPs') {
    return listAt(object, 'status', 'podIPs')
      .map((entry) => textAt(entry, 'ip') ?? '')
      .join(',')
  }
  if (object.kind === 'Event' && path === 'source') {
    return textAt(object, 'source', 'component') || textAt(object, 'reportingComponent')
  }
  const value = at(object, ...path.split('.'))
  return value === undefined || value === null || typeof value === 'object'
    ? undefined
    : String(value)
}
