import {
  bool,
  fieldsV1,
  int64,
  list,
  listOf,
  map,
  message,
  of,
  optional,
  shown,
  string,
  time,
} from './notation.ts'

// apimachinery pkg/apis/meta/v1

const ownerReference = message('OwnerReference', {
  kind: shown(string(1)),
  name: shown(string(3)),
  uid: shown(string(4)),
  apiVersion: shown(string(5)),
  controller: optional(bool(6)),
  blockOwnerDeletion: optional(bool(7)),
})

const managedFieldsEntry = message('ManagedFieldsEntry', {
  manager: string(1),
  operation: string(2),
  apiVersion: string(3),
  time: optional(time(4)),
  fieldsType: string(6),
  fieldsV1: optional(fieldsV1(7)),
  subresource: string(8),
})

export const objectMeta = message('ObjectMeta', {
  name: string(1),
  generateName: string(2),
  namespace: string(3),
  selfLink: string(4),
  uid: string(5),
  resourceVersion: string(6),
  generation: int64(7),
  creationTimestamp: time(8),
  deletionTimestamp: optional(time(9)),
  deletionGracePeriodSeconds: optional(int64(10)),
  labels: map(string(11)),
  annotations: map(string(12)),
  ownerReferences: list(of(13, ownerReference)),
  finalizers: list(string(14)),
  managedFields: list(of(17, managedFieldsEntry)),
})

export const listMeta = message('ListMeta', {
  selfLink: string(1),
  resourceVersion: string(2),
  continue: string(3),
  remainingItemCount: optional(int64(4)),
})

export const partialObjectMetadata = message('PartialObjectMetadata', {
  metadata: of(1, objectMeta),
})

export const partialObjectMetadataList = listOf(listMeta, partialObjectMetadata)
