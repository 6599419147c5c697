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
import { filteredEvent } from './filtered-event.ts'
import type { WatchEvent } from './watch.ts'

/** What a list or watch asks of a resource. */
export interface Selectors {
  /** Absent: all namespaces, or a resource of the cluster. */
  readonly namespace?: string
  readonly labelSelector: string
  readonly fieldSelector: string
}

/**
 * Which objects of a collection a list or watch is about, told from their bytes as the API server
 * tells it.
 */
export interface Selection {
  /** Nothing is left out. */
  readonly everything: boolean
  /** `gvk` is that of the object, not of its list. */
  selects(gvk: GVK, encoding: Encoding, object: ApiObject): boolean
  /**
   * Whether namespace and name allow it, which never change: what they rule out was never selected
   * and never will be.
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
 * `undefined`: it cannot be told here, because a field is asked for that is not known for the
 * resource (a custom resource's definition may name more than its name and namespace), or because
 * objects in this form do not show it. Throws `MalformedSelector`.
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
    // A message whose fields have no numbers here cannot be read.
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
 * What a watch with this selection shows of an event of a wider one, as an API server has it
 * (apiserver pkg/storage/cacher): what newly matches is ADDED, what matches no longer DELETED, with
 * what it was before at the version of the change. `undefined`: nothing. Bookmarks and errors pass.
 * The event and its frame stay the same where nothing changes.
 *
 * Where what was before is not known, the event's type tells: an ADDED was not there before; after
 * a MODIFIED that does not match a DELETED is due, which does no harm to whoever was never shown
 * the object; a DELETED comes with the last state, which tells as well.
 */
export function selectEvent(
  selection: Selection,
  gvk: GVK,
  encoding: Encoding,
  event: WatchEvent,
): WatchEvent | undefined {
  if (selection.everything || event.type === 'BOOKMARK' || event.type === 'ERROR') return event
  if (!selection.mayEverSelect(event.object)) return undefined
  const selects = (object: ApiObject): boolean => selection.selects(gvk, encoding, object)
  if (event.type === 'DELETED' && !event.previous) return selects(event.object) ? event : undefined
  return filteredEvent(gvk, encoding, event, (object) => (selects(object) ? object : undefined))
}
