import type { GVR } from '../../../api/kube/gvk.ts'
import type { RepresentationKey } from '../../../api/request/representation.ts'
import type { Identity } from '../../../api/request/identity.ts'
import type { Partition, CollectionKey } from '../store.ts'

/** Partition and GVR: identity, representation, group, version, resource. */
export type ScopeKey = readonly [string, string, string, string, string]

/** The address of a collection in its scope; `namespace` is '' for all. */
export interface CollectionAddress {
  readonly scope: ScopeKey
  readonly namespace: string
  readonly labelSelector: string
  readonly fieldSelector: string
}

export const scopeOf = ({ identity, representation }: Partition, gvr: GVR): ScopeKey => [
  identity,
  representation,
  gvr.group,
  gvr.version,
  gvr.resource,
]

export const addressOf = (key: CollectionKey): CollectionAddress => ({
  scope: scopeOf(key.partition, key.gvr),
  namespace: key.namespace ?? '',
  labelSelector: key.labelSelector,
  fieldSelector: key.fieldSelector,
})

/** The reverse of `addressOf`. */
export function keyOf(address: CollectionAddress): CollectionKey {
  const { scope, namespace, labelSelector, fieldSelector } = address
  const [identity, representation, group, version, resource] = scope
  return {
    partition: {
      identity: identity as Identity,
      representation: representation as RepresentationKey,
    },
    gvr: { group, version, resource },
    ...(namespace !== '' && { namespace }),
    labelSelector,
    fieldSelector,
  }
}

/** A collection by its text in its scope, or an object's record by its `nameKey`. */
export type Part = readonly [scope: ScopeKey, part: string]

export const partOf = (of: CollectionAddress): Part => [of.scope, textInScope(of)]

export const textOfScope = (scope: ScopeKey): string => JSON.stringify(scope)

/** A collection's name within its scope. */
export const textInScope = (of: Omit<CollectionAddress, 'scope'>): string =>
  JSON.stringify([of.namespace, of.labelSelector, of.fieldSelector])

/** A collection's name in the store. */
export const textOf = (address: CollectionAddress): string =>
  textOfScope(address.scope) + textInScope(address)

/** Names may contain any character, also a separator. */
export const nameKey = ({ namespace, name }: { namespace: string; name: string }): string =>
  `${namespace.length}/${namespace}${name}`

/** Whether a collection would hold an object of this name if there were one. */
export const covers = (
  of: Omit<CollectionAddress, 'scope'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): boolean =>
  (of.namespace === '' || of.namespace === namespace) &&
  of.labelSelector === '' &&
  (of.fieldSelector === '' || of.fieldSelector === `metadata.name=${name}`)
