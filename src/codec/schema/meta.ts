import {
  bool,
  fieldsV1,
  int32,
  int64,
  list,
  map,
  message,
  of,
  optional,
  shown,
  string,
  time,
  unlessZero,
  wrapped,
} from './notation.ts'

// kubernetes/apimachinery pkg/apis/meta/v1

const ownerReference = message('OwnerReference', {
  apiVersion: shown(string(5)),
  kind: shown(string(1)),
  name: shown(string(3)),
  uid: shown(string(4)),
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
  creationTimestamp: unlessZero(time(8)),
  deletionTimestamp: optional(time(9)),
  deletionGracePeriodSeconds: optional(int64(10)),
  labels: map(string(11)),
  annotations: map(string(12)),
  ownerReferences: list(of(13, ownerReference)),
  finalizers: list(string(14)),
  managedFields: list(of(17, managedFieldsEntry)),
})

const shardInfo = message('ShardInfo', {
  selector: shown(string(1)),
})

export const listMeta = message('ListMeta', {
  selfLink: string(1),
  resourceVersion: string(2),
  continue: string(3),
  remainingItemCount: optional(int64(4)),
  shardInfo: optional(of(5, shardInfo)),
})

export const condition = message('Condition', {
  type: shown(string(1)),
  status: shown(string(2)),
  observedGeneration: int64(3),
  lastTransitionTime: time(4),
  reason: shown(string(5)),
  message: shown(string(6)),
})

export const labelSelectorRequirement = message('LabelSelectorRequirement', {
  key: shown(string(1)),
  operator: shown(string(2)),
  values: list(string(3)),
})

export const labelSelector = message('LabelSelector', {
  matchLabels: map(string(1)),
  matchExpressions: list(of(2, labelSelectorRequirement)),
})

const statusCause = message('StatusCause', {
  reason: string(1),
  message: string(2),
  field: string(3),
})

const statusDetails = message('StatusDetails', {
  name: string(1),
  group: string(2),
  kind: string(3),
  uid: string(6),
  causes: list(of(4, statusCause)),
  retryAfterSeconds: int32(5),
})

export const status = message('Status', {
  metadata: of(1, listMeta),
  status: string(2),
  message: string(3),
  reason: string(4),
  details: optional(of(5, statusDetails)),
  code: int32(6),
})

const preconditions = message('Preconditions', {
  uid: optional(string(1)),
  resourceVersion: optional(string(2)),
})

export const deleteOptions = message('DeleteOptions', {
  gracePeriodSeconds: optional(int64(1)),
  preconditions: optional(of(2, preconditions)),
  orphanDependents: optional(bool(3)),
  propagationPolicy: optional(string(4)),
  dryRun: list(string(5)),
  ignoreStoreReadErrorWithClusterBreakingPotential: optional(bool(6)),
})

export const partialObjectMetadata = message('PartialObjectMetadata', {
  metadata: of(1, objectMeta),
})

const verbs = wrapped('Verbs', string)

const apiResource = message('APIResource', {
  name: shown(string(1)),
  singularName: shown(string(6)),
  namespaced: shown(bool(2)),
  group: string(8),
  version: string(9),
  kind: shown(string(3)),
  verbs: shown(optional(of(4, verbs))),
  shortNames: list(string(5)),
  categories: list(string(7)),
  storageVersionHash: string(10),
})

export const apiResourceList = message('APIResourceList', {
  groupVersion: shown(string(1)),
  resources: shown(list(of(2, apiResource))),
})
