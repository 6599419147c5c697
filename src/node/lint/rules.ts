import type { JsonObject } from '../../api/kube/json.ts'
import type { Context } from './context.ts'
import type { Finding } from './finding.ts'
import { podsOf } from './pod.ts'
import type { Rule } from './rule.ts'
import { affinityMatchesNothing, affinityValueNotText } from './rules/affinity.ts'
import { clusterDnsOnHostNetwork, hostDnsOnStandardNode } from './rules/dns.ts'
import {
  excludeAnnotationValue,
  excludedDaemonSet,
  neverScheduled,
  noPodNetwork,
  unknownPool,
} from './rules/network.ts'
import { kubeletFlags, loopbackOnly } from './rules/node-files.ts'
import { cloudPool, hostNetworkNotBoolean, poolVersion } from './rules/node-pools.ts'
import { oldField, oldFilter, oldLabel, desiredPoolLabel } from './rules/old-names.ts'
import { podSecurityLevel } from './rules/pod-security.ts'
import { hostPortDiffers, reservedPort, samePortTwice, undeclaredPort } from './rules/ports.ts'
import { morePodsThanNodes, rolloutStalls } from './rules/replicas.ts'
import { hostNetworkChanged } from './rules/unchangeable.ts'

/** Every rule, in the order of the table in docs/cli.md. */
export const rules: readonly Rule[] = [
  noPodNetwork,
  clusterDnsOnHostNetwork,
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
  hostNetworkChanged,
  cloudPool,
  poolVersion,
  hostNetworkNotBoolean,
  oldLabel,
  oldField,
  oldFilter,
  desiredPoolLabel,
  affinityValueNotText,
  affinityMatchesNothing,
  kubeletFlags,
  loopbackOnly,
  unknownPool,
]

/** The findings in one object, in the order of the rules. */
export function findingsIn(object: JsonObject, context: Context): readonly Finding[] {
  const pods = podsOf(object)
  return rules.flatMap((rule) => {
    const found = [
      ...pods.flatMap((pod) => [...(rule.checkPod?.(pod, context) ?? [])]),
      ...(rule.checkObject?.(object, context) ?? []),
    ]
    return found.map(({ path, message, level }) => ({
      rule: rule.id,
      level: level ?? rule.level,
      message,
      path,
    }))
  })
}
