import { hostNetworkLabel, isEdgeWorkerLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { previousAttributesAnnotation } from '../previous-attributes.ts'
import { all, annotationOf, any, isOneOf, labelOf, quoted, user } from './cel.ts'
import { nodeConditions } from './conditions.ts'

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

/** Writes of pools, in whichever version. */
export const poolWrites: ResourceRule = {
  group: 'apps.openyurt.io',
  version: 'v1beta2',
  operations: ['CREATE', 'UPDATE'],
  resources: ['nodepools'],
}

/**
 * Changes of nodes. A status patch may change labels too (k/k pkg/registry/core/node/strategy.go
 * resets only the spec).
 */
export const nodeUpdates: ResourceRule = {
  group: '',
  version: 'v1',
  operations: ['UPDATE'],
  resources: ['nodes', 'nodes/status'],
}

export const nodeCreates: ResourceRule = {
  ...nodeUpdates,
  operations: ['CREATE'],
  resources: ['nodes'],
}

export const podCreates: ResourceRule = { ...nodeCreates, resources: ['pods'] }

const written = { version: 'v1', operations: ['CREATE', 'UPDATE'] } as const

/** Writes of objects that make pods. */
export const workloadWrites: readonly ResourceRule[] = [
  { group: 'apps', ...written, resources: ['deployments', 'daemonsets', 'statefulsets'] },
  { group: 'batch', ...written, resources: ['jobs', 'cronjobs'] },
]

/**
 * Whether requests are refused where no webhook answers, or a policy cannot be evaluated: writes of
 * pools are. An API server without the definition of NodePools would otherwise refuse each status
 * of each kubelet.
 */
export const failurePolicyOf = (all: readonly ResourceRule[]): 'Fail' | 'Ignore' =>
  all.every(({ group }) => group === 'apps.openyurt.io') ? 'Fail' : 'Ignore'

/**
 * The ValidatingAdmissionPolicy that keeps a node from moving between pools, and its binding: the
 * API server evaluates it once for each NodePool, `params`, so that a node does not enter a pool of
 * the other kind either. With no pool at all there is none to move to.
 */
export const nodesKeptInPools = (controllers: readonly string[]): readonly object[] => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'nodehub-nodes' },
    spec: {
      failurePolicy: failurePolicyOf([nodeUpdates]),
      paramKind: { apiVersion: 'apps.openyurt.io/v1beta2', kind: 'NodePool' },
      matchConstraints: { matchPolicy: 'Equivalent', resourceRules: [ruleOf(nodeUpdates)] },
      matchConditions: nodeConditions(controllers),
      validations: [...nodeRules, ...kindRules],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'nodehub-nodes' },
    spec: {
      policyName: 'nodehub-nodes',
      paramRef: { selector: {}, parameterNotFoundAction: 'Allow' },
      validationActions: ['Deny'],
    },
  },
]

interface Validation {
  readonly expression: string
  readonly message: string
}

/** Whether `params`, the pool of this evaluation, has a host network. */
const isHostNetwork = 'params.?spec.?hostNetwork.orValue(false)'

/**
 * Whether an annotation remembers that the pool of a node had a host network, or that it had none
 * (see `readPrevious`).
 */
const remembers = (self: string, hostNetwork: boolean): string =>
  `${annotationOf(self, previousAttributesAnnotation)}.matches(${quoted(`"hostNetwork"\\s*:\\s*${hostNetwork}`)})`

const same = (label: string): string =>
  `${labelOf('object', label)} == ${labelOf('oldObject', label)}`

/**
 * OpenYurt's controller that turns nodes into edge workers and back (openyurt
 * pkg/yurtmanager/controller/yurtnodeconversion).
 */
const converter = 'system:serviceaccount:kube-system:yurt-manager-yurt-node-conversion-controller'

const nodeRules: readonly Validation[] = [
  {
    expression: any(
      same(nodePoolLabel),
      `${labelOf('oldObject', nodePoolLabel)} == ""`,
      `${labelOf('object', nodePoolLabel)} == ""`,
    ),
    message: `metadata.labels[${nodePoolLabel}]: the node is in a NodePool: take this label off before another is put on`,
  },
  {
    expression: same(hostNetworkLabel),
    message: `metadata.labels[${hostNetworkLabel}]: only the controller of NodePools changes this label`,
  },
  {
    expression: all(
      any(`!${remembers('oldObject', true)}`, remembers('object', true)),
      any(`!${remembers('oldObject', false)}`, remembers('object', false)),
    ),
    message: `metadata.annotations[${previousAttributesAnnotation}]: of which kind the pool of a node was stays remembered`,
  },
  {
    expression: any(
      same(isEdgeWorkerLabel),
      `${user}.startsWith("system:node:")`,
      isOneOf(user, [converter]),
    ),
    message: `metadata.labels[${isEdgeWorkerLabel}]: only nodes themselves and what converts them change this label`,
  },
]

const entersThisPool = all(
  `${labelOf('oldObject', nodePoolLabel)} == ""`,
  `${labelOf('object', nodePoolLabel)} == params.metadata.name`,
)

const kindRules: readonly Validation[] = [
  {
    expression: any(
      `!(${entersThisPool})`,
      isHostNetwork,
      all(
        `!${remembers('oldObject', true)}`,
        any(remembers('oldObject', false), `${labelOf('oldObject', hostNetworkLabel)} != "true"`),
      ),
    ),
    message: `metadata.labels[${nodePoolLabel}]: the node was in a host-network pool and this is a standard pool: delete the Node and join again`,
  },
  {
    expression: any(
      `!(${entersThisPool})`,
      `!${isHostNetwork}`,
      `!${remembers('oldObject', false)}`,
    ),
    message: `metadata.labels[${nodePoolLabel}]: the node was in a standard pool and this is a host-network pool: delete the Node and join again`,
  },
]
