import { objectMeta } from './meta.ts'
import { localObjectReference, objectReference } from './reference.ts'
import {
  bool,
  bytes,
  int32,
  list,
  map,
  message,
  microtime,
  of,
  optional,
  shown,
  string,
  time,
} from './notation.ts'

// kubernetes/api core/v1

export const configMap = message('ConfigMap', {
  metadata: of(1, objectMeta),
  immutable: optional(bool(4)),
  data: map(string(2)),
  binaryData: map(bytes(3)),
})

export const secret = message('Secret', {
  metadata: of(1, objectMeta),
  immutable: optional(bool(5)),
  data: map(bytes(2)),
  stringData: map(string(4)),
  type: string(3),
})

export const eventSource = message('EventSource', {
  component: string(1),
  host: string(2),
})

const eventSeries = message('EventSeries', {
  count: int32(1),
  lastObservedTime: microtime(2),
})

export const event = message('Event', {
  metadata: of(1, objectMeta),
  involvedObject: of(2, objectReference),
  reason: string(3),
  message: string(4),
  source: of(5, eventSource),
  firstTimestamp: time(6),
  lastTimestamp: time(7),
  count: int32(8),
  type: string(9),
  eventTime: microtime(10),
  series: optional(of(11, eventSeries)),
  action: string(12),
  related: optional(of(13, objectReference)),
  reportingComponent: shown(string(14)),
  reportingInstance: shown(string(15)),
})

const namespaceSpec = message('NamespaceSpec', {
  finalizers: list(string(1)),
})

const namespaceCondition = message('NamespaceCondition', {
  type: shown(string(1)),
  status: shown(string(2)),
  lastTransitionTime: time(4),
  reason: string(5),
  message: string(6),
})

const namespaceStatus = message('NamespaceStatus', {
  phase: string(1),
  conditions: list(of(2, namespaceCondition)),
})

export const namespace = message('Namespace', {
  metadata: of(1, objectMeta),
  spec: of(2, namespaceSpec),
  status: of(3, namespaceStatus),
})

export const serviceAccount = message('ServiceAccount', {
  metadata: of(1, objectMeta),
  secrets: list(of(2, objectReference)),
  imagePullSecrets: list(of(3, localObjectReference)),
  automountServiceAccountToken: optional(bool(4)),
})
