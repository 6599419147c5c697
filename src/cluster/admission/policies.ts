import { hostNetworkLabel, isEdgeWorkerLabel, nodePoolLabel } from '../../api/kube/node-pool.ts'
import { previousAttributesAnnotation } from '../previous-attributes.ts'
import { all, annotationOf, any, isCreate, isOneOf, labelOf, quoted, user } from './cel.ts'
import { nodeConditions } from './conditions.ts'
import type { Actors } from './node.ts'
import { validating, type ResourceRule, type Validation } from './policy.ts'

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
 * Rules about pools and nodes that hold without any webhook: the API server evaluates them itself.
 * It reads NodePools as parameters, so that a node does not enter a pool of the other kind either.
 */
export const rulesAsPolicies = (actors: Actors): readonly object[] => [
  ...validating({ name: 'pools', matched: poolWrites }, poolRules),
  ...validating(
    { name: 'nodes', matched: nodeUpdates, conditions: nodeConditions(actors) },
    nodeRules(actors),
  ),
  ...validating(
    {
      name: 'node-kind',
      matched: nodeUpdates,
      withPools: true,
      conditions: [
        ...nodeConditions(actors),
        {
          name: 'enters-this-pool',
          expression: all(
            `${labelOf('oldObject', nodePoolLabel)} == ""`,
            `${labelOf('object', nodePoolLabel)} == params.metadata.name`,
          ),
        },
      ],
    },
    [
      {
        expression: any(
          isHostNetwork,
          all(
            `!${remembers('oldObject', true)}`,
            any(
              remembers('oldObject', false),
              `${labelOf('oldObject', hostNetworkLabel)} != "true"`,
            ),
          ),
        ),
        message: `metadata.labels[${nodePoolLabel}]: the node was in a host-network pool and this is a standard pool: delete the Node and join again`,
      },
      {
        expression: any(`!${isHostNetwork}`, `!${remembers('oldObject', false)}`),
        message: `metadata.labels[${nodePoolLabel}]: the node was in a standard pool and this is a host-network pool: delete the Node and join again`,
      },
    ],
  ),
]

/** Whether `params`, the pool of this evaluation, has a host network. */
export const isHostNetwork = 'params.?spec.?hostNetwork.orValue(false)'

const name = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'
const prefix = '[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/'
const qualified = quoted(`^(${prefix})?${name}$`)
const value = quoted(`^(${name})?$`)

const spec = (self: string, field: string, otherwise: string): string =>
  `${self}.?spec.?${field}.orValue(${otherwise})`

const keeps = (field: string, otherwise: string): Validation => ({
  expression: any(
    isCreate,
    `${spec('object', field, otherwise)} == ${spec('oldObject', field, otherwise)}`,
  ),
  message: `spec.${field}: a pool keeps its ${field}: make another pool`,
  reason: 'Forbidden',
})

const type = (self: string): string => spec(self, 'type', '"Edge"')
const strategy = (self: string): string => spec(self, 'leaderElectionStrategy', '"random"')

/** A problem that the change leaves as it is does not block the change. */
const orAsBefore = (expression: string, same: string): string =>
  any(expression, all(`!(${isCreate})`, same))

const each = (field: 'annotations' | 'labels', condition: string): string => {
  const before = spec('oldObject', field, '{}')
  return (
    `${spec('object', field, '{}')}.all(k, (${condition}) || ` +
    `(!(${isCreate}) && k in ${before} && ${before}[k] == object.spec.${field}[k]))`
  )
}

const poolRules: readonly Validation[] = [
  keeps('type', '"Edge"'),
  keeps('hostNetwork', 'false'),
  keeps('interConnectivity', 'false'),
  {
    expression: orAsBefore(
      isOneOf(type('object'), ['Edge', 'Cloud']),
      `${type('object')} == ${type('oldObject')}`,
    ),
    message: 'spec.type: a pool is of type Edge or Cloud',
  },
  {
    expression: any(
      `!(${isCreate})`,
      `${type('object')} != "Cloud"`,
      `!${spec('object', 'hostNetwork', 'false')}`,
    ),
    message: 'spec.hostNetwork: a pool of type Cloud has no host network: use type: Edge',
  },
  {
    expression: orAsBefore(
      isOneOf(strategy('object'), ['random', 'mark']),
      `${strategy('object')} == ${strategy('oldObject')}`,
    ),
    message: 'spec.leaderElectionStrategy: it is random or mark',
  },
  {
    expression: each('annotations', `k.lowerAscii().matches(${qualified})`),
    message: 'spec.annotations: a name is none that an annotation can have',
  },
  {
    expression: each(
      'labels',
      all(`k.matches(${qualified})`, `object.spec.labels[k].matches(${value})`),
    ),
    message: 'spec.labels: a name or a value is none that a label can have',
  },
  {
    expression: each('labels', `!(${isOneOf('k', [nodePoolLabel, hostNetworkLabel])})`),
    message: `spec.labels: ${nodePoolLabel} and ${hostNetworkLabel} follow from the pool a node is in`,
  },
  {
    expression:
      `${spec('object', 'taints', '[]')}.all(t, (${all(
        `t.key.matches(${qualified})`,
        `t.?value.orValue("").matches(${value})`,
        isOneOf('t.effect', ['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
      )}) || ` + `(!(${isCreate}) && t in ${spec('oldObject', 'taints', '[]')}))`,
    message: 'spec.taints: a taint is none that a node can have',
  },
]

/**
 * Whether an annotation remembers that the pool of a node had a host network, or that it had none
 * (see `readPrevious`).
 */
const remembers = (self: string, hostNetwork: boolean): string =>
  `${annotationOf(self, previousAttributesAnnotation)}.matches(${quoted(`"hostNetwork"\\s*:\\s*${hostNetwork}`)})`

const same = (label: string): string =>
  `${labelOf('object', label)} == ${labelOf('oldObject', label)}`

const nodeRules = ({ converters }: Actors): readonly Validation[] => [
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
      isOneOf(user, converters),
    ),
    message: `metadata.labels[${isEdgeWorkerLabel}]: only nodes themselves and what converts them change this label`,
  },
]
