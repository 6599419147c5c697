import type { CollectionKey } from '../store/store.ts'

/** Identifies a collection of one identity, or of all, among all. */
export const collectionId = ({
  partition,
  gvr,
  namespace,
  labelSelector,
  fieldSelector,
}: CollectionKey): string =>
  JSON.stringify([
    partition.identity,
    partition.representation,
    gvr.group,
    gvr.version,
    gvr.resource,
    namespace ?? null,
    labelSelector,
    fieldSelector,
  ])
