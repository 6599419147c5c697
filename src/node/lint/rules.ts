import type { Rule } from './rule.ts'
import { affinityNowhere, affinityTexts } from './rules/affinity.ts'
import { clusterDnsWithoutCluster, hostDnsOnStandardNode } from './rules/dns.ts'
import {
  excludeAnnotationValue,
  excludedDaemonSet,
  neverScheduled,
  noPodNetwork,
  unknownPool,
} from './rules/network.ts'
import { kubeletFlags, loopbackOnly } from './rules/node-files.ts'
import { cloudPool, poolBoolean, poolVersion } from './rules/node-pools.ts'
import { oldField, oldFilter, oldLabel, wishOfPod } from './rules/old-names.ts'
import { podSecurityLevel } from './rules/pod-security.ts'
import { hostPortDiffers, reservedPort, samePortTwice, undeclaredPort } from './rules/ports.ts'
import { morePodsThanNodes, rolloutStalls } from './rules/replicas.ts'
import { unchangeable } from './rules/unchangeable.ts'

/** Every rule, in the order in which their table stands in docs/host-network.md. */
export const rules: readonly Rule[] = [
  noPodNetwork,
  clusterDnsWithoutCluster,
  hostDnsOnStandardNode,
  undeclaredPort,
  hostPortDiffers,
  samePortTwice,
  reservedPort,
  morePodsThanNodes,
  rolloutStalls,
  podSecurityLevel,
  excludeAnnotationValue,
  neverScheduled,
  excludedDaemonSet,
  unchangeable,
  cloudPool,
  poolVersion,
  poolBoolean,
  oldLabel,
  oldField,
  oldFilter,
  wishOfPod,
  affinityTexts,
  affinityNowhere,
  kubeletFlags,
  loopbackOnly,
  unknownPool,
]
