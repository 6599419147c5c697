import type { GVK } from '../kube/gvk.ts'

/** Whether objects of this kind show the metadata of another object. */
export const isPartial = ({ group, kind }: GVK): boolean =>
  group === 'meta.k8s.io' && (kind === 'PartialObjectMetadata' || kind === 'Table')
