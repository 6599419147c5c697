import { list, message, of, optional, quantity, shown, string } from './notation.ts'

// kubernetes/api core/v1

export const localObjectReference = message('LocalObjectReference', {
  name: string(1),
})

export const objectReference = message('ObjectReference', {
  kind: string(1),
  namespace: string(2),
  name: string(3),
  uid: string(4),
  apiVersion: string(5),
  resourceVersion: string(6),
  fieldPath: string(7),
})

export const typedLocalObjectReference = message('TypedLocalObjectReference', {
  apiGroup: shown(optional(string(1))),
  kind: shown(string(2)),
  name: shown(string(3)),
})

export const typedObjectReference = message('TypedObjectReference', {
  apiGroup: shown(optional(string(1))),
  kind: shown(string(2)),
  name: shown(string(3)),
  namespace: optional(string(4)),
})

export const objectFieldSelector = message('ObjectFieldSelector', {
  apiVersion: string(1),
  fieldPath: shown(string(2)),
})

export const resourceFieldSelector = message('ResourceFieldSelector', {
  containerName: string(1),
  resource: shown(string(2)),
  divisor: quantity(3),
})

const nodeSelectorRequirement = message('NodeSelectorRequirement', {
  key: shown(string(1)),
  operator: shown(string(2)),
  values: list(string(3)),
})

export const nodeSelectorTerm = message('NodeSelectorTerm', {
  matchExpressions: list(of(1, nodeSelectorRequirement)),
  matchFields: list(of(2, nodeSelectorRequirement)),
})

export const nodeSelector = message('NodeSelector', {
  nodeSelectorTerms: shown(list(of(1, nodeSelectorTerm))),
})
