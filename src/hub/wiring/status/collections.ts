import { apiVersionOf, qualifiedResource } from '../../../api/kube/gvk.ts'
import { representationText } from '../../../api/request/representation.ts'
import type { Cacher } from '../../cache/cacher/cacher.ts'
import type { MeasuredCollection, StoreOverview } from '../../store/log/log-store.ts'
import type { CollectionStatus, HubStatus } from './document.ts'

/** The collections of a store, and how many watches `cacherOf` serves of each. */
export const collectionStatuses = (
  stored: StoreOverview,
  cacherOf: (collection: MeasuredCollection) => Cacher | undefined,
): HubStatus['collections'] => ({
  items: stored.collections.map((each) => statusOf(each, cacherOf(each))),
  omitted: stored.omitted,
})

const statusOf = (
  { key, readers, resourceVersion, confirmedAt, objects, bytes }: MeasuredCollection,
  cacher: Cacher | undefined,
): CollectionStatus => ({
  resource: qualifiedResource(key.gvr),
  apiVersion: apiVersionOf(key.gvr),
  namespace: key.namespace ?? '',
  labelSelector: shortened(key.labelSelector),
  fieldSelector: shortened(key.fieldSelector),
  identity: readers.join(', '),
  representation: representationText(key.partition.representation),
  resourceVersion,
  confirmedAt: new Date(confirmedAt).toISOString(),
  objects,
  bytes,
  watchers: cacher?.watchers ?? 0,
  live: cacher?.isLive ?? false,
})

/** Clients choose selectors, which may be as long as the head of a request. */
const mostSelector = 200

/** A selector for people. */
export const shortened = (text: string): string =>
  text.length <= mostSelector ? text : `${text.slice(0, mostSelector)}…`
