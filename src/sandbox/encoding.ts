import type { GVK } from '../api/kube/gvk.ts'
import { apiVersionOf } from '../api/kube/gvk.ts'
import type { Json, JsonObject } from '../api/kube/json.ts'
import { apiVersionOfKind, type Kind } from './kinds.ts'
import { withoutType, type KubeObject } from './object.ts'

const escapes: Record<string, string> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
}

const escapeForHtml = (text: string): string =>
  text.replace(/[<>&\u2028\u2029]/g, (character) => escapes[character] ?? character)

/** JSON as Go's encoder writes it: no spaces, and safe inside HTML. */
export const jsonText = (value: Json): string => escapeForHtml(JSON.stringify(value))

/** JSON for people: indented, without a line end. */
export const prettyText = (value: Json): string => escapeForHtml(JSON.stringify(value, null, 2))

// An object never changes, so its text is made once, however many watches send it.
const texts = new WeakMap<KubeObject, string>()

/** The members of a built-in object after kind and apiVersion, or a custom object as it is. */
function textOf(kind: Kind, object: KubeObject): string {
  const known = texts.get(object)
  if (known !== undefined) return known
  const text = kind.custom ? jsonText(object) : jsonText(withoutType(object)).slice(1, -1)
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
    return `{"kind":"${kind.kind}List","apiVersion":"${apiVersion}","metadata":${jsonText(metadata)},"items":[${items}]}`
  }
  const sorted = { continue: '', ...metadata }
  return `{"apiVersion":"${apiVersion}","items":[${items}],"kind":"${kind.kind}List","metadata":${jsonText(sorted)}}`
}

/** A list as a value. */
export const listObject = (
  gvk: GVK,
  metadata: JsonObject,
  items: readonly JsonObject[],
): JsonObject => ({ kind: gvk.kind, apiVersion: apiVersionOf(gvk), metadata, items })
