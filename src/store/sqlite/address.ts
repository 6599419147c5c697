import type { GVR } from '../../kube/gvk.ts'
import type { Audience, CollectionKey } from '../store.ts'
import type { CollectionAddress, ScopeKey } from './messages.ts'

export const scopeOf = ({ identity, form }: Audience, gvr: GVR): ScopeKey => [
  identity,
  form,
  gvr.group,
  gvr.version,
  gvr.resource,
]

export const addressOf = (key: CollectionKey): CollectionAddress => ({
  scope: scopeOf(key.audience, key.gvr),
  namespace: key.namespace ?? '',
  labelSelector: key.labelSelector,
  fieldSelector: key.fieldSelector,
})

/** The reverse of `addressOf`. */
export const keyOf = (
  audience: Audience,
  gvr: GVR,
  { namespace, labelSelector, fieldSelector }: CollectionAddress,
): CollectionKey => ({
  audience,
  gvr,
  ...(namespace !== '' && { namespace }),
  labelSelector,
  fieldSelector,
})
