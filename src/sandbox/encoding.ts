import { goJson } from '../api/codec/json/write.ts'
import { apiVersionOf, type GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { apiVersionOfKind, type Kind } from './kinds.ts'
import { withoutType, type KubeObject } from './object.ts'

// An object never changes, so its text is made once, however many watches send it.
const texts = new WeakMap<KubeObject, string>()

/** The members of a built-in object after kind and apiVersion, or a custom object as it is. */
function textOf(kind: Kind, object: KubeObject): string {
  const known = texts.get(object)
  if (known !== undefined) return known
  const text = kind.custom ? goJson(object) : goJson(withoutType(object)).slice(1, -1)
  texts.set(object, text)
  return text
}

/** An object alone or in a watch event. */
export const objectText = (kind: Kind, object: KubeObject): string =>
  kind.custom
    ? textOf(kind, object)
    : `{"kind":"${kind.kind}","apiVersion":"${apiVersionOfKind(kind)}",${textOf(kind, object)}}`

/** An object in a list: built-in ones do without kind and apiVersion there. */
const itemText = (kind: Kind, object: KubeObject): string =>
  kind.custom ? textOf(kind, object) : `{${textOf(kind, object)}}`

/**
 * A list of whole objects; that of a custom resource has its members sorted, and so its metadata
 * last.
 */
export function listText(kind: Kind, metadata: JsonObject, objects: readonly KubeObject[]): string {
  const items = objects.map((object) => itemText(kind, object)).join(',')
  const apiVersion = apiVersionOfKind(kind)
  if (!kind.custom) {
    return `{"kind":"${kind.kind}List","apiVersion":"${apiVersion}","metadata":${goJson(metadata)},"items":[${items}]}`
  }
  const sorted = { continue: '', ...metadata }
  return `{"apiVersion":"${apiVersion}","items":[${items}],"kind":"${kind.kind}List","metadata":${goJson(sorted)}}`
}

/** A list as a value. */
export const listObject = (
  gvk: GVK,
  metadata: JsonObject,
  items: readonly JsonObject[],
): JsonObject => ({ kind: gvk.kind, apiVersion: apiVersionOf(gvk), metadata, items })
