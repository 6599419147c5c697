import type { GVR } from '../../../api/kube/gvk.ts'
import type { Partition, CollectionKey } from '../store.ts'

/** Partition and GVR: identity, representation, group, version, resource. */
export type ScopeKey = readonly [string, string, string, string, string]

/** The key of a collection in the tables; `namespace` is '' for all. */
export interface CollectionAddress {
  readonly scope: ScopeKey
  readonly namespace: string
  readonly labelSelector: string
  readonly fieldSelector: string
}

/** Selects the row of `scope`; its parameters are a `ScopeKey`. */
export const whereScope =
  'identity = ? AND form = ? AND api_group = ? AND api_version = ? AND resource = ?'

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
export const keyOf = (
  partition: Partition,
  gvr: GVR,
  { namespace, labelSelector, fieldSelector }: CollectionAddress,
): CollectionKey => ({
  partition,
  gvr,
  ...(namespace !== '' && { namespace }),
  labelSelector,
  fieldSelector,
})
