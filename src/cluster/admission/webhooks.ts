import { clientConfig, type WebhookTarget } from '../target.ts'
import {
  nodeConditions,
  podConditions,
  poolConditions,
  poolDefaultConditions,
  workloadConditions,
  type MatchCondition,
} from './conditions.ts'
import type { Actors } from './node.ts'
import { webhookPaths } from './paths.ts'
import { nodeUpdates } from './policies.ts'

interface Rule {
  /** Where it is not that of the webhook. */
  readonly group?: string
  readonly operations: readonly string[]
  readonly resources: readonly string[]
}

interface WebhookOptions {
  readonly name: string
  readonly path: string
  readonly group: string
  readonly version: string
  readonly rules: readonly Rule[]
  readonly conditions?: readonly MatchCondition[]
  /** Whether the request is refused where no webhook answers. */
  readonly failurePolicy: 'Fail' | 'Ignore'
  readonly more?: object
}

const pools = { group: 'apps.openyurt.io', version: 'v1beta2', failurePolicy: 'Fail' } as const
const core = { group: '', version: 'v1', failurePolicy: 'Ignore' } as const

/**
 * The requests that API servers send to the webhooks, and what happens where none answers: writes
 * of pools fail, those of nodes and pods go on. `name`: of both configurations. `namespace`: the
 * webhooks' own, whose pods do not wait for themselves.
 */
export const webhookConfigurations = (
  target: WebhookTarget,
  actors: Actors,
  { name, namespace }: { readonly name: string; readonly namespace: string },
): readonly object[] => [
  configuration('MutatingWebhookConfiguration', name, [
    webhook(target, {
      ...pools,
      name: 'defaults.nodepools.apps.openyurt.io',
      path: webhookPaths.poolDefaults,
      rules: [{ operations: ['CREATE', 'UPDATE'], resources: ['nodepools'] }],
      conditions: poolDefaultConditions,
    }),
    webhook(target, {
      ...core,
      name: 'defaults.nodes.apps.openyurt.io',
      path: webhookPaths.nodeDefaults,
      rules: [{ operations: ['CREATE'], resources: ['nodes'] }, nodeUpdates],
      conditions: nodeConditions(actors),
    }),
    webhook(target, {
      ...core,
      name: 'defaults.pods.apps.openyurt.io',
      path: webhookPaths.podDefaults,
      rules: [{ operations: ['CREATE'], resources: ['pods'] }],
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
      ...pools,
      name: 'rules.nodepools.apps.openyurt.io',
      path: webhookPaths.poolRules,
      rules: [{ operations: ['CREATE', 'UPDATE', 'DELETE'], resources: ['nodepools'] }],
      conditions: poolConditions(actors),
    }),
    webhook(target, {
      ...core,
      name: 'rules.nodes.apps.openyurt.io',
      path: webhookPaths.nodeRules,
      rules: [nodeUpdates],
      conditions: nodeConditions(actors),
    }),
    webhook(target, {
      ...core,
      name: 'warnings.workloads.apps.openyurt.io',
      path: webhookPaths.workloadWarnings,
      rules: [
        { group: 'apps', ...written, resources: ['deployments', 'daemonsets', 'statefulsets'] },
        { group: 'batch', ...written, resources: ['jobs', 'cronjobs'] },
      ],
      conditions: workloadConditions,
      more: elsewhere(namespace),
    }),
  ]),
]

const written = { operations: ['CREATE', 'UPDATE'] } as const

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
  failurePolicy: wanted.failurePolicy,
  matchPolicy: 'Equivalent',
  sideEffects: 'None',
  timeoutSeconds,
  rules: wanted.rules.map(({ group = wanted.group, operations, resources }) => ({
    apiGroups: [group],
    apiVersions: [wanted.version],
    operations,
    resources,
    scope: /[.](?:pods|workloads)[.]/.test(wanted.name) ? 'Namespaced' : 'Cluster',
  })),
  ...(wanted.conditions && { matchConditions: wanted.conditions }),
  ...wanted.more,
})
