import type { GVK, GVR } from '../kube/gvk.ts'
import type { Encoding, Projection } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { selectableKind, selectableValue, type SelectableField } from '../kube/selectable-fields.ts'
import {
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from '../kube/selectors.ts'
import { cursorOf, type Cursor } from './cursor.ts'
import { schemaOf } from './schema/schema.ts'
import { filteredEvent, isObjectEvent, type WatchEvent } from './watch.ts'

/** The namespace and selectors of a list or watch. */
export interface Selectors {
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string
  readonly labelSelector: string
  readonly fieldSelector: string
}

/** Selects objects of a collection by their bytes, as the API server does. */
export interface Selection {
  /** Every object is selected. */
  readonly everything: boolean
  /** `gvk` is that of the object, not of its list. */
  selects(gvk: GVK, encoding: Encoding, object: ApiObject): boolean
  /**
   * Whether namespace and name match. They never change: an object that fails here is never
   * selected.
   */
  mayEverSelect(object: ApiObject): boolean
}

/** Selects every object. */
export const everything: Selection = {
  everything: true,
  selects: () => true,
  mayEverSelect: () => true,
}

const ofIdentity = new Set(['metadata.name', 'metadata.namespace'])

/**
 * The selection for a list or watch. `undefined` if the hub cannot decide it: the selector uses a
 * field that is unknown for the resource (a custom resource's definition may add fields), or that
 * objects in this representation do not show. Throws `MalformedSelector`.
 */
export function selectionOf(
  gvr: GVR,
  { namespace, labelSelector, fieldSelector }: Selectors,
  { encoding, projection }: { readonly encoding: Encoding; readonly projection: Projection },
): Selection | undefined {
  const labels = parseLabelSelector(labelSelector)
  const all = parseFieldSelector(fieldSelector)
  const ofName = all.filter(({ field }) => ofIdentity.has(field))
  const ofContent = all.filter(({ field }) => !ofIdentity.has(field))
  const kind = selectableKind(gvr)
  if (kind?.byNamespace === false && all.some(({ field }) => field === 'metadata.namespace')) {
    return undefined
  }
  const fields = new Map<string, SelectableField>()
  for (const { field } of ofContent) {
    const known = kind?.fields.get(field)
    if (!known || projection !== 'object') return undefined
    // The schema lacks the field numbers of this kind.
    if (encoding === 'protobuf' && !schemaOf({ ...gvr, kind: kind?.kind ?? '' })) return undefined
    fields.set(field, known)
  }
  const mayEverSelect = (object: ApiObject): boolean =>
    (namespace === undefined || object.namespace === namespace) &&
    matchesFields(ofName, (field) => (field === 'metadata.name' ? object.name : object.namespace))
  return {
    everything: namespace === undefined && labels.length === 0 && all.length === 0,
    mayEverSelect,
    selects: (gvk, encodedAs, object) => {
      if (!mayEverSelect(object)) return false
      if (labels.length === 0 && fields.size === 0) return true
      const cursor = cursorOf(encodedAs, gvk, object)
      return (
        matchesLabels(labels, (key) => cursor.label(key)) &&
        matchesFields(ofContent, (field) => valueOf(fields.get(field), cursor))
      )
    },
  }
}

const valueOf = (field: SelectableField | undefined, cursor: Cursor): string | undefined =>
  field && selectableValue(field, (path) => cursor.value(path))

/**
 * The event of a wider watch as a watch with this selection shows it (apiserver
 * pkg/storage/cacher): an object that newly matches is ADDED; one that no longer matches is
 * DELETED, with its previous state at the version of the change. `undefined`: no event. Other
 * events pass. Event and frame stay the same instance if nothing changes.
 *
 * Without the previous state the type decides. An ADDED object did not exist before. After a
 * MODIFIED that does not match, a DELETED is sent: it does no harm to a client that never received
 * the object. A DELETED carries the last state, which decides.
 */
export function selectEvent(
  selection: Selection,
  gvk: GVK,
  encoding: Encoding,
  event: WatchEvent,
): WatchEvent | undefined {
  if (selection.everything || !isObjectEvent(event)) return event
  if (!selection.mayEverSelect(event.object)) return undefined
  const selects = (object: ApiObject): boolean => selection.selects(gvk, encoding, object)
  if (event.type === 'DELETED' && !event.previous) return selects(event.object) ? event : undefined
  return filteredEvent(gvk, encoding, event, (object) => (selects(object) ? object : undefined))
}
