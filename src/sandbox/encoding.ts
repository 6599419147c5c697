import { goJson } from '../api/codec/json/write.ts'
import { apiVersionOf, type GVK } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { apiVersionOfKind, type Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'

// An object never changes, so its text is made once, however many watches send it.
const texts = new WeakMap<KubeObject, string>()

/** An object alone or in a watch event. */
export function objectText(object: KubeObject): string {
  const known = texts.get(object)
  if (known !== undefined) return known
  const text = goJson(object)
  texts.set(object, text)
  return text
}

/**
 * A list of whole objects; that of a custom resource has its members sorted, and so its metadata
 * last.
 */
export function listText(kind: Kind, metadata: JsonObject, objects: readonly KubeObject[]): string {
  const apiVersion = apiVersionOfKind(kind)
  // Built-in objects do without kind and apiVersion there.
  const type = kind.custom ? '{' : `{"kind":"${kind.kind}","apiVersion":"${apiVersion}",`
  const items = objects.map((object) => `{${objectText(object).slice(type.length)}`).join(',')
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
