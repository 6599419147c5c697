import type { Json } from '../api/kube/json.ts'
import { valueAt } from '../api/kube/json-at.ts'
import { selectableKind, selectableValue } from '../api/kube/selectable-fields.ts'
import {
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from '../api/kube/selectors.ts'
import { badRequest, StatusError } from '../api/kube/status.ts'
import type { Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'

/** Selects objects of a kind by namespace and selectors. */
export interface SelectionPredicate {
  /** Whether anything but the namespace narrows it. */
  readonly selective: boolean
  selects(object: KubeObject): boolean
}

/** Throws `MalformedSelector`, and a StatusError for fields the kind cannot be selected by. */
export function selectionOf(
  kind: Kind,
  namespace: string | undefined,
  query: URLSearchParams,
): SelectionPredicate {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '')
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '')
  for (const { field } of fields) checkField(kind, field)
  // Hundreds of watches evaluate each object.
  const readers = new Map(fields.map(({ field }) => [field, fieldReader(kind, field)]))
  return {
    selective: labels.length > 0 || fields.length > 0,
    selects: (object) =>
      (namespace === undefined || object.metadata.namespace === namespace) &&
      matchesLabels(labels, labelReader(object)) &&
      matchesFields(fields, (field) => readers.get(field)?.(object)),
  }
}

function labelReader(object: KubeObject): (key: string) => string | undefined {
  const labels = object.metadata['labels'] as Record<string, Json> as
    Record<string, string> | undefined
  return (key) => (labels && Object.hasOwn(labels, key) ? labels[key] : undefined)
}

function checkField(kind: Kind, field: string): void {
  if (field === 'metadata.name') return
  const known = selectableKind(kind.gvr)
  const byNamespace = kind.namespaced || (known?.byNamespace ?? !kind.custom)
  if (field === 'metadata.namespace' && byNamespace) return
  if (kind.fields.includes(field)) return
  // Kinds without fields of their own fall to apimachinery pkg/runtime/conversion.go, which words
  // it otherwise.
  const message =
    known || kind.custom
      ? `field label not supported: ${field}`
      : `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`
  throw new StatusError(badRequest(message))
}

/** Reads a field of objects of a kind; `undefined` where one has none. */
function fieldReader(kind: Kind, field: string): (object: KubeObject) => string | undefined {
  const known = selectableKind(kind.gvr)?.fields.get(field)
  const path = field.split('.')
  return (object) => {
    const read = (steps: readonly string[]): string | number | boolean | undefined => {
      const value = valueAt(object, ...steps)
      return value === null || typeof value === 'object' ? undefined : value
    }
    if (known) return selectableValue(known, read)
    const value = read(path)
    return value === undefined ? undefined : String(value)
  }
}
