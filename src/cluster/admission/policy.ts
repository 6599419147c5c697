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

export interface PolicyOptions {
  /** After `nodehub-`; unlike any other policy's. */
  readonly name: string
  readonly matched: ResourceRule | readonly ResourceRule[]
  readonly conditions?: readonly MatchCondition[]
  /** Names for expressions, in order: later ones may use those before. */
  readonly variables?: readonly (readonly [name: string, expression: string])[]
  /** Evaluated once for each NodePool, `params`, and not at all where there is none. */
  readonly withPools?: boolean
}

export interface Validation {
  readonly expression: string
  readonly message: string
  /** The message put together in CEL, where that succeeds. */
  readonly messageExpression?: string
  readonly reason?: 'Forbidden' | 'Invalid'
}

const apiVersion = 'admissionregistration.k8s.io/v1'

/** A ValidatingAdmissionPolicy that refuses, and its binding. */
export const validating = (
  text: PolicyOptions,
  validations: readonly Validation[],
): readonly object[] => validatingWith(text, validations, 'Deny')

/** One that warns, and refuses nothing. */
export const warning = (
  text: PolicyOptions,
  validations: readonly Validation[],
): readonly object[] => validatingWith(text, validations, 'Warn')

const validatingWith = (
  text: PolicyOptions,
  validations: readonly Validation[],
  action: 'Deny' | 'Warn',
): readonly object[] => [
  {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: `nodehub-${text.name}` },
    spec: { ...specOf(text), validations },
  },
  binding('ValidatingAdmissionPolicyBinding', text, { validationActions: [action] }),
]

/** A MutatingAdmissionPolicy and its binding. Each expression is a list of JSONPatch operations. */
export const mutating = (text: PolicyOptions, patches: readonly string[]): readonly object[] => [
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
 * Whether requests are refused where no webhook answers, or a policy cannot be evaluated: writes of
 * pools are. An API server without the definition of NodePools would otherwise refuse each status
 * of each kubelet.
 */
export const failurePolicyOf = (all: readonly ResourceRule[]): 'Fail' | 'Ignore' =>
  all.every(({ group }) => group === 'apps.openyurt.io') ? 'Fail' : 'Ignore'

const specOf = ({ matched, conditions = [], variables = [], withPools }: PolicyOptions) => ({
  failurePolicy: failurePolicyOf([matched].flat()),
  ...(withPools && { paramKind: { apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool' } }),
  matchConstraints: {
    matchPolicy: 'Equivalent',
    resourceRules: [matched].flat().map(ruleOf),
  },
  ...(conditions.length > 0 && { matchConditions: conditions }),
  ...(variables.length > 0 && {
    variables: variables.map(([name, expression]) => ({ name, expression })),
  }),
})

const binding = (kind: string, { name, withPools }: PolicyOptions, more: object) => ({
  apiVersion,
  kind,
  metadata: { name: `nodehub-${name}` },
  spec: {
    policyName: `nodehub-${name}`,
    ...(withPools && { paramRef: { selector: {}, parameterNotFoundAction: 'Allow' } }),
    ...more,
  },
})
