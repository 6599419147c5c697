import { labelSelector } from './meta.ts'
import { nodeSelector, nodeSelectorTerm } from './reference.ts'
import { int32, int64, list, message, of, optional, shown, string } from './notation.ts'

// kubernetes/api core/v1

const preferredSchedulingTerm = message('PreferredSchedulingTerm', {
  weight: shown(int32(1)),
  preference: of(2, nodeSelectorTerm),
})

const nodeAffinity = message('NodeAffinity', {
  requiredDuringSchedulingIgnoredDuringExecution: optional(of(1, nodeSelector)),
  preferredDuringSchedulingIgnoredDuringExecution: list(of(2, preferredSchedulingTerm)),
})

const podAffinityTerm = message('PodAffinityTerm', {
  labelSelector: optional(of(1, labelSelector)),
  namespaces: list(string(2)),
  topologyKey: shown(string(3)),
  namespaceSelector: optional(of(4, labelSelector)),
  matchLabelKeys: list(string(5)),
  mismatchLabelKeys: list(string(6)),
})

const weightedPodAffinityTerm = message('WeightedPodAffinityTerm', {
  weight: shown(int32(1)),
  podAffinityTerm: of(2, podAffinityTerm),
})

const podAffinity = message('PodAffinity', {
  requiredDuringSchedulingIgnoredDuringExecution: list(of(1, podAffinityTerm)),
  preferredDuringSchedulingIgnoredDuringExecution: list(of(2, weightedPodAffinityTerm)),
})

const podAntiAffinity = message('PodAntiAffinity', {
  requiredDuringSchedulingIgnoredDuringExecution: list(of(1, podAffinityTerm)),
  preferredDuringSchedulingIgnoredDuringExecution: list(of(2, weightedPodAffinityTerm)),
})

export const affinity = message('Affinity', {
  nodeAffinity: optional(of(1, nodeAffinity)),
  podAffinity: optional(of(2, podAffinity)),
  podAntiAffinity: optional(of(3, podAntiAffinity)),
})

export const toleration = message('Toleration', {
  key: string(1),
  operator: string(2),
  value: string(3),
  effect: string(4),
  tolerationSeconds: optional(int64(5)),
})

export const topologySpreadConstraint = message('TopologySpreadConstraint', {
  maxSkew: shown(int32(1)),
  topologyKey: shown(string(2)),
  whenUnsatisfiable: shown(string(3)),
  labelSelector: optional(of(4, labelSelector)),
  minDomains: optional(int32(5)),
  nodeAffinityPolicy: optional(string(6)),
  nodeTaintsPolicy: optional(string(7)),
  matchLabelKeys: list(string(8)),
})

export const podSchedulingGate = message('PodSchedulingGate', {
  name: shown(string(1)),
})

export const podSchedulingGroup = message('PodSchedulingGroup', {
  podGroupName: optional(string(1)),
})
