import type { MatchCondition } from './conditions.ts'

/** What a policy is asked about. */
export interface Matched {
  readonly group: string
  readonly version: string
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[]
  readonly resources: readonly string[]
}

export interface PolicyText {
  /** After `nodehub-`; unlike any other policy's. */
  readonly name: string
  readonly matched: Matched
  readonly conditions?: readonly MatchCondition[]
  /** Names for expressions, in order: later ones may use those before. */
  readonly variables?: readonly (readonly [name: string, expression: string])[]
  /** Whether it is asked once for each NodePool, `params`, and not at all without one. */
  readonly withPools?: boolean
}

export interface Validation {
  readonly expression: string
  readonly message: string
  readonly reason?: 'Forbidden' | 'Invalid'
}

const apiVersion = 'admissionregistration.k8s.io/v1'

/** A ValidatingAdmissionPolicy and its binding. */
export const validating = (
  text: PolicyText,
  validations: readonly Validation[],
): readonly object[] => [
  {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: `nodehub-${text.name}` },
    spec: { ...specOf(text), validations },
  },
  binding('ValidatingAdmissionPolicyBinding', text, { validationActions: ['Deny'] }),
]

/** A MutatingAdmissionPolicy and its binding. Each expression is a list of JSONPatch operations. */
export const mutating = (text: PolicyText, patches: readonly string[]): readonly object[] => [
  {
    apiVersion,
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: `nodehub-${text.name}` },
    spec: {
      ...specOf(text),
      reinvocationPolicy: 'IfNeeded',
      mutations: patches.map((expression) => ({
        patchType: 'JSONPatch',
        jsonPatch: { expression },
      })),
    },
  },
  binding('MutatingAdmissionPolicyBinding', text, {}),
]

/**
 * What becomes of a request where the policy itself fails, as for webhooks. An API server that knows no definition of NodePools would refuse
 * each status of each kubelet.
 */
const failurePolicyOf = ({ group }: Matched): 'Fail' | 'Ignore' =>
  group === 'apps.openyurt.io' ? 'Fail' : 'Ignore'

const specOf = ({ matched, conditions = [], variables = [], withPools }: PolicyText) => ({
  failurePolicy: failurePolicyOf(matched),
  ...(withPools && { paramKind: { apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool' } }),
  matchConstraints: {
    matchPolicy: 'Equivalent',
    resourceRules: [
      {
        apiGroups: [matched.group],
        apiVersions: [matched.version],
        operations: matched.operations,
        resources: matched.resources,
      },
    ],
  },
  ...(conditions.length > 0 && { matchConditions: conditions }),
  ...(variables.length > 0 && {
    variables: variables.map(([name, expression]) => ({ name, expression })),
  }),
})

const binding = (kind: string, { name, withPools }: PolicyText, more: object) => ({
  apiVersion,
  kind,
  metadata: { name: `nodehub-${name}` },
  spec: {
    policyName: `nodehub-${name}`,
    ...(withPools && { paramRef: { selector: {}, parameterNotFoundAction: 'Allow' } }),
    ...more,
  },
})
