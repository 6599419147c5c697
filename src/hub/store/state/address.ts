import { selectorOfName } from '../../../api/kube/selectors.ts'
import type { CollectionKey, ObjectKey } from '../store.ts'

/** The answers to one identity, or to all, in one representation, of one resource. */
export type ScopeKey = Pick<CollectionKey, 'partition' | 'gvr'>

export const scopeOf = ({ partition, gvr }: ScopeKey): ScopeKey => ({ partition, gvr })

/** A collection by its text in its scope, or an object's record by its `nameKey`. */
export type Part = readonly [scope: ScopeKey, part: string]

export const partOf = (key: CollectionKey): Part => [scopeOf(key), textInScope(key)]

/** Of the last call: for one event there are five. */
let last: (ScopeKey & { readonly text: string }) | undefined

export function textOfScope({ partition, gvr }: ScopeKey): string {
  if (partition !== last?.partition || gvr !== last.gvr) {
    const { group, version, resource } = gvr
    const { identity, representation } = partition
    const text = JSON.stringify([identity, representation, group, version, resource])
    last = { partition, gvr, text }
  }
  return last.text
}

/** Scopes of one resource in any version and representation, of one identity or all. */
export const textOfResource = ({ partition, gvr: { group, resource } }: ScopeKey): string =>
  JSON.stringify([partition.identity, group, resource])

/** What identifies a collection in its scope. */
export type KeyInScope = Omit<CollectionKey, keyof ScopeKey>

/** A collection's name within its scope. */
export const textInScope = ({ namespace = '', labelSelector, fieldSelector }: KeyInScope): string =>
  JSON.stringify([namespace, labelSelector, fieldSelector])

/** A collection's name in the store. */
export const textOf = (key: CollectionKey): string => textOfScope(key) + textInScope(key)

export type Named = Pick<ObjectKey, 'namespace' | 'name'>

/** Names may contain any character, also a separator. */
export const nameKey = ({ namespace, name }: Named): string =>
  `${namespace.length}/${namespace}${name}`

/** Whether a collection is of this namespace, or of all. */
export const isIn = ({ namespace: of = '' }: KeyInScope, namespace: string | undefined): boolean =>
  of === '' || of === namespace

/** Whether a collection would hold an object of this name if there were one. */
export const covers = (of: KeyInScope, { namespace, name }: Named): boolean =>
  isIn(of, namespace) &&
  of.labelSelector === '' &&
  (of.fieldSelector === '' || of.fieldSelector === selectorOfName(name))
