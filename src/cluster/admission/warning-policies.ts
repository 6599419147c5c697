import { excludeAnnotation, hostNetworkLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { oldLabels } from '../../node/lint/rules/old-names.ts'
import { all, any, isOneOf, quoted } from './cel.ts'
import { podGuidanceConditions } from './conditions.ts'
import { isHostNetwork, podCreates, workloadWrites } from './policies.ts'
import { warning, type ResourceRule, type Validation } from './policy.ts'

const matched: readonly ResourceRule[] = [podCreates, ...workloadWrites]

/**
 * The pod, or the template that pods are made of. One policy is about objects of many kinds: hence
 * `dyn`.
 */
const whole = 'dyn(object)'
const pod = `has(${whole}.spec.jobTemplate) ? ${whole}.spec.jobTemplate.spec.template : has(${whole}.spec.template) ? ${whole}.spec.template : ${whole}`

const spec = 'variables.pod.?spec'
const onHostNetwork = `${spec}.?hostNetwork.orValue(false)`

const variables = [
  ['pod', pod],
  [
    'exclude',
    `variables.pod.?metadata.?annotations[?${quoted(excludeAnnotation)}].orValue("without")`,
  ],
  [
    'terms',
    `${spec}.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])`,
  ],
  ['pool', `${spec}.?nodeSelector[?${quoted(nodePoolLabel)}].orValue("")`],
] as const

const expressions = 't.?matchExpressions.orValue([])'

/** A rule of lint in the same words. `holds`: where there is no finding. */
const withMessage = (rule: string, holds: string, message: string): Validation => ({
  expression: holds,
  message: `${message} (${rule})`,
})

/** The same, with a message that CEL puts together. */
const withMessageExpression = (
  rule: string,
  holds: string,
  ...parts: readonly string[]
): Validation => ({
  expression: holds,
  message: rule,
  messageExpression: [...parts, quoted(` (${rule})`)].join(' + '),
})

const declares = (containers: string): string =>
  `${containers}.exists(c, c.?ports.orValue([]).size() > 0)`

const rules: readonly Validation[] = [
  withMessageExpression(
    'exclude-annotation',
    isOneOf('variables.exclude', ['without', 'true', 'false']),
    quoted('"'),
    'string(variables.exclude)',
    quoted('" has no effect: the annotation must be exactly "true"'),
  ),
  withMessage(
    'exclude-annotation',
    'variables.exclude != "false"',
    'only "true" has an effect: leave the annotation out',
  ),
  withMessage(
    'exclude-annotation',
    any('variables.exclude != "true"', `!${onHostNetwork}`),
    'the pod is on the host network and needs no pod network: the annotation keeps it off nodes on which it would run',
  ),
  withMessage(
    'undeclared-port',
    any(
      `!${onHostNetwork}`,
      declares(`${spec}.?containers.orValue([])`),
      declares(
        `${spec}.?initContainers.orValue([]).filter(c, c.?restartPolicy.orValue("") == "Always")`,
      ),
    ),
    'no container declares a port: if one listens, declare it as containerPort, so that no second pod is put on a node where it is taken',
  ),
  withMessage(
    'affinity-matches-nothing',
    `variables.terms.all(t, ${any(`${expressions}.size() > 0`, 't.?matchFields.orValue([]).size() > 0')})`,
    'this term matches no node: take it out',
  ),
  ...oldLabels.map((label) =>
    withMessage(
      'old-label',
      all(
        `!(${quoted(label)} in ${spec}.?nodeSelector.orValue({}))`,
        `!variables.terms.exists(t, ${expressions}.exists(e, e.key == ${quoted(label)}))`,
      ),
      `${label} is without effect: the label is ${hostNetworkLabel}, with the value "true"`,
    ),
  ),
]

/** Rules about pods whose node selector names a host-network pool, `params`. */
const rulesOfPool: readonly Validation[] = [
  withMessageExpression(
    'no-pod-network',
    any(onHostNetwork, 'variables.exclude == "true"'),
    quoted('the pod can run in '),
    'params.metadata.name',
    quoted(' alone, where there is no pod network: set hostNetwork: true'),
  ),
  withMessageExpression(
    'never-scheduled',
    'variables.exclude != "true"',
    quoted('the pod can run in '),
    'params.metadata.name',
    quoted(' alone, and the annotation keeps it off: it stays Pending'),
  ),
  withMessageExpression(
    'cluster-dns-on-host-network-pool',
    any(
      'variables.exclude == "true"',
      `${spec}.?dnsPolicy.orValue("") != "ClusterFirstWithHostNet"`,
    ),
    quoted('the pod runs in '),
    'params.metadata.name',
    quoted(
      ', a host-network pool, where dnsPolicy ClusterFirstWithHostNet resolves no name: use Default',
    ),
  ),
]

/**
 * Warnings to authors of pods and workloads, as policies: the rules of lint that need the pod
 * alone, or the pod and the host-network pool that its node selector names. `podHostNetwork`:
 * admission puts such pods on the host network, and nothing is reported about it.
 */
export const warningsAsPolicies = (podHostNetwork: boolean): readonly object[] => [
  ...warning(
    { name: 'pod-guidance', matched, conditions: podGuidanceConditions, variables },
    rules,
  ),
  ...warning(
    {
      name: 'pod-guidance-of-pool',
      matched,
      withPools: true,
      conditions: [
        ...podGuidanceConditions,
        { name: 'is-host-network-pool', expression: `${isHostNetwork} == true` },
      ],
      variables: [...variables],
    },
    rulesOfPool
      .filter(({ message }) => !podHostNetwork || message !== 'no-pod-network')
      .map((rule) => ({
        ...rule,
        expression: any('variables.pool != params.metadata.name', rule.expression),
      })),
  ),
]
