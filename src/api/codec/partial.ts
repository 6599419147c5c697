import type { GVK } from '../kube/gvk.ts'

/** Whether an object of this kind shows the metadata of another, and is not the object itself. */
export const isPartial = ({ group, kind }: GVK): boolean =>
  group === 'meta.k8s.io' && (kind === 'PartialObjectMetadata' || kind === 'Table')
