import type { MatchCondition } from './conditions.ts'

/** The requests that a webhook gets, or for which a policy is evaluated. */
export interface ResourceRule {
  readonly group: string
  readonly version: string
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[]
  readonly resources: readonly string[]
}

/** As webhook configurations and policies have it. */
export const ruleOf = ({ group, version, operations, resources }: ResourceRule) => ({
  apiGroups: [group],
  apiVersions: [version],
  operations,
  resources,
})

interface PolicyOptions {
  /** After `nodehub-`; unlike any other policy's. */
  readonly name: string
  readonly matched: ResourceRule
  readonly conditions: readonly MatchCondition[]
}

export interface Validation {
  readonly expression: string
  readonly message: string
}

const apiVersion = 'admissionregistration.k8s.io/v1'

/**
 * A ValidatingAdmissionPolicy that refuses, and its binding: it is evaluated once for each
 * NodePool, `params`, and not at all where there is none.
 */
export const validatingForPools = (
  { name, matched, conditions }: PolicyOptions,
  validations: readonly Validation[],
): readonly object[] => [
  {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: `nodehub-${name}` },
    spec: {
      failurePolicy: failurePolicyOf([matched]),
      paramKind: { apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool' },
      matchConstraints: { matchPolicy: 'Equivalent', resourceRules: [ruleOf(matched)] },
      matchConditions: conditions,
      validations,
    },
  },
  {
    apiVersion,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: `nodehub-${name}` },
    spec: {
      policyName: `nodehub-${name}`,
      paramRef: { selector: {}, parameterNotFoundAction: 'Allow' },
      validationActions: ['Deny'],
    },
  },
]

/**
 * Whether requests are refused where no webhook answers, or a policy cannot be evaluated: writes of
 * pools are. An API server without the definition of NodePools would otherwise refuse each status
 * of each kubelet.
 */
export const failurePolicyOf = (all: readonly ResourceRule[]): 'Fail' | 'Ignore' =>
  all.every(({ group }) => group === 'apps.openyurt.io') ? 'Fail' : 'Ignore'
