import { clientConfig, type WebhookTarget } from '../target.ts'
import {
  nodeConditions,
  podConditions,
  poolConditions,
  poolDefaultConditions,
  workloadConditions,
  type MatchCondition,
} from './conditions.ts'
import { webhookPaths } from './paths.ts'
import {
  nodeCreates,
  nodeUpdates,
  podCreates,
  poolWrites,
  workloadWrites,
  failurePolicyOf,
  ruleOf,
  type ResourceRule,
} from './policies.ts'

interface WebhookOptions {
  readonly name: string
  readonly path: string
  readonly rules: readonly ResourceRule[]
  readonly conditions?: readonly MatchCondition[]
  readonly more?: object
}

/**
 * The requests that API servers send to the webhooks. Where none answers, writes of pools fail, and
 * those of nodes and pods go on. `name`: of both configurations. `namespace`: the webhooks' own,
 * whose pods do not wait for themselves.
 */
export const webhookConfigurations = (
  target: WebhookTarget,
  controllers: readonly string[],
  { name, namespace }: { readonly name: string; readonly namespace: string },
): readonly object[] => [
  configuration('MutatingWebhookConfiguration', name, [
    webhook(target, {
      name: 'defaults.nodepools.apps.openyurt.io',
      path: webhookPaths.poolDefaults,
      rules: [poolWrites],
      conditions: poolDefaultConditions,
    }),
    webhook(target, {
      name: 'defaults.nodes.apps.openyurt.io',
      path: webhookPaths.nodeDefaults,
      rules: [nodeCreates, nodeUpdates],
      conditions: nodeConditions(controllers),
    }),
    webhook(target, {
      name: 'defaults.pods.apps.openyurt.io',
      path: webhookPaths.podDefaults,
      rules: [podCreates],
      conditions: podConditions,
      more: {
        // Another webhook may add terms.
        reinvocationPolicy: 'IfNeeded',
        ...elsewhere(namespace),
      },
    }),
  ]),
  configuration('ValidatingWebhookConfiguration', name, [
    webhook(target, {
      name: 'rules.nodepools.apps.openyurt.io',
      path: webhookPaths.poolRules,
      rules: [{ ...poolWrites, operations: ['CREATE', 'UPDATE', 'DELETE'] }],
      conditions: poolConditions(controllers),
    }),
    webhook(target, {
      name: 'warnings.workloads.apps.openyurt.io',
      path: webhookPaths.workloadWarnings,
      rules: workloadWrites,
      conditions: workloadConditions,
      more: elsewhere(namespace),
    }),
  ]),
]

const elsewhere = (namespace: string) => ({
  namespaceSelector: {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [namespace] },
    ],
  },
})

const configuration = (kind: string, name: string, webhooks: readonly object[]) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind,
  metadata: { name },
  webhooks,
})

/** Short: kubelets that register and controllers that create pods wait for it. */
export const timeoutSeconds = 5

const webhook = (target: WebhookTarget, wanted: WebhookOptions) => ({
  name: wanted.name,
  admissionReviewVersions: ['v1'],
  clientConfig: clientConfig(target, wanted.path),
  failurePolicy: failurePolicyOf(wanted.rules),
  matchPolicy: 'Equivalent',
  sideEffects: 'None',
  timeoutSeconds,
  rules: wanted.rules.map((rule) => ({
    ...ruleOf(rule),
    scope: /[.](?:pods|workloads)[.]/.test(wanted.name) ? 'Namespaced' : 'Cluster',
  })),
  ...(wanted.conditions && { matchConditions: wanted.conditions }),
  ...wanted.more,
})
