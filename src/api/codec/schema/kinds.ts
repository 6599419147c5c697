const withLists = (scope: string, ...kinds: readonly string[]): readonly string[] =>
  kinds.flatMap((kind) => [`${scope}.${kind}`, `${scope}.${kind}List`])

/** The messages of the supported kinds, as `messages.json` names them, by `apiVersion`. */
export const kinds: Readonly<Record<string, readonly string[]>> = {
  v1: [
    ...withLists('core.v1', 'Pod', 'Node', 'Service', 'Endpoints', 'ConfigMap', 'Secret', 'Event'),
    ...withLists('core.v1', 'Namespace', 'ServiceAccount'),
    ...withLists('core.v1', 'PersistentVolumeClaim', 'PersistentVolume'),
    'meta.v1.Status',
    'meta.v1.APIResourceList',
  ],
  // Discovery of the core group has no version of its own.
  '': ['meta.v1.APIResourceList'],
  'meta.k8s.io/v1': withLists('meta.v1', 'PartialObjectMetadata'),
  'meta.k8s.io/v1beta1': withLists('meta.v1', 'PartialObjectMetadata'),
  'discovery.k8s.io/v1': withLists('discovery.v1', 'EndpointSlice'),
  // Served by API servers before 1.25.
  'discovery.k8s.io/v1beta1': withLists('discovery.v1beta1', 'EndpointSlice'),
  'events.k8s.io/v1': withLists('events.v1', 'Event'),
  'coordination.k8s.io/v1': withLists('coordination.v1', 'Lease'),
  'storage.k8s.io/v1': withLists('storage.v1', 'CSINode', 'CSIDriver', 'VolumeAttachment'),
  'node.k8s.io/v1': withLists('node.v1', 'RuntimeClass'),
  'authentication.k8s.io/v1': ['authentication.v1.TokenRequest', 'authentication.v1.TokenReview'],
  'authorization.k8s.io/v1': [
    'authorization.v1.SubjectAccessReview',
    'authorization.v1.SelfSubjectAccessReview',
    'authorization.v1.LocalSubjectAccessReview',
  ],
}

/** Clients write these options in the group and version of the object to delete. */
export const deleteOptions = 'meta.v1.DeleteOptions'
