/** As much of a structural schema (OpenAPI v3, apiextensions.k8s.io/v1) as pools need. */
export interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean'
  readonly description?: string
  readonly format?: 'int32' | 'date-time'
  readonly default?: string
  readonly enum?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic'
  readonly 'x-kubernetes-list-type'?: 'atomic'
  readonly 'x-kubernetes-validations'?: readonly Rule[]
}

/** A rule in CEL that the API server itself holds objects to. */
export interface Rule {
  readonly rule: string
  readonly message: string
  readonly fieldPath?: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden'
  readonly optionalOldSelf?: true
}

export const poolVersions = ['v1alpha1', 'v1beta1', 'v1beta2'] as const

export type PoolVersion = (typeof poolVersions)[number]

export const storageVersion: PoolVersion = 'v1beta2'

type Fields = Readonly<Record<string, Schema>>

const text: Schema = { type: 'string' }
const flag = (description: string): Schema => ({ type: 'boolean', description })
const count = (description: string): Schema => ({ type: 'integer', format: 'int32', description })
const time = (description: string): Schema => ({ type: 'string', format: 'date-time', description })
const texts = (description: string): Schema => ({ type: 'array', items: text, description })
const map = (description: string): Schema => ({
  type: 'object',
  additionalProperties: text,
  description,
})

const taint: Schema = {
  type: 'object',
  required: ['effect', 'key'],
  properties: {
    key: text,
    value: text,
    effect: { type: 'string', enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] },
    timeAdded: time('When the taint was added; for NoExecute only.'),
  },
}

const everySpec: Fields = {
  type: {
    type: 'string',
    enum: ['Edge', 'Cloud'],
    default: 'Edge',
    description: 'Where the nodes of the pool are. It cannot be changed.',
  },
  labels: map('Put on each node of the pool, in the place of what a node has by the same name.'),
  annotations: map(
    'Put on each node of the pool, in the place of what a node has by the same name.',
  ),
  taints: { type: 'array', items: taint, description: 'Put on each node of the pool.' },
}

const hostNetwork: Fields = {
  hostNetwork: flag(
    'Pods on the nodes of the pool share the network of their host, and components of the pod network do not run there. ' +
      'It cannot be changed.',
  ),
}

const selector: Fields = {
  selector: {
    type: 'object',
    description: 'Without effect: a node is in the pool that its label names.',
    'x-kubernetes-map-type': 'atomic',
    properties: {
      matchLabels: { type: 'object', additionalProperties: text },
      matchExpressions: {
        type: 'array',
        'x-kubernetes-list-type': 'atomic',
        items: {
          type: 'object',
          required: ['key', 'operator'],
          properties: {
            key: text,
            operator: text,
            values: { type: 'array', items: text, 'x-kubernetes-list-type': 'atomic' },
          },
        },
      },
    },
  },
}

const leadership: Fields = {
  interConnectivity: flag('The nodes of the pool reach each other. It cannot be changed.'),
  enableLeaderElection: flag('Leaders among the hubs of the pool are elected.'),
  leaderElectionStrategy: {
    type: 'string',
    enum: ['random', 'mark'],
    description:
      'random: any ready node leads. mark: one of those that leaderNodeLabelSelector selects.',
  },
  leaderNodeLabelSelector: map('With the strategy mark: the labels of nodes that may lead.'),
  leaderReplicas: count('How many leaders there are.'),
  poolScopeMetadata: {
    type: 'array',
    description: 'Resources whose answers the nodes of the pool share.',
    items: {
      type: 'object',
      required: ['group', 'resource', 'version'],
      properties: { group: text, version: text, resource: text },
    },
  },
}

const everyStatus: Fields = {
  readyNodeNum: count('How many nodes of the pool are ready.'),
  unreadyNodeNum: count('How many are not.'),
  nodes: texts('The names of the nodes in the pool.'),
}

const leadershipStatus: Fields = {
  leaderEndpoints: {
    type: 'array',
    items: {
      type: 'object',
      required: ['address', 'nodeName'],
      properties: { nodeName: text, address: text },
    },
  },
  leaderNum: count('How many leaders there are now.'),
  leaderLastElectedTime: time('When a leader was elected last.'),
  conditions: {
    type: 'array',
    items: {
      type: 'object',
      properties: {
        type: text,
        status: text,
        lastTransitionTime: time('When the status of the condition changed.'),
        reason: text,
        message: text,
      },
    },
  },
}

/** The fields that a version of NodePool has. */
export const fieldsOf: Readonly<
  Record<PoolVersion, { readonly spec: Fields; readonly status: Fields }>
> = {
  v1alpha1: { spec: { ...everySpec, ...selector }, status: everyStatus },
  v1beta1: { spec: { ...everySpec, ...hostNetwork }, status: everyStatus },
  v1beta2: {
    spec: { ...everySpec, ...hostNetwork, ...leadership },
    status: { ...everyStatus, ...leadershipStatus },
  },
}

/** The whole schema of a version, with the rules that need nothing but the pool itself. */
export const schemaOf = (version: PoolVersion): Schema => ({
  type: 'object',
  description: 'NodePool is a set of nodes that are set up alike.',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: 'object' },
    spec: { type: 'object', properties: fieldsOf[version].spec },
    status: { type: 'object', properties: fieldsOf[version].status },
  },
  'x-kubernetes-validations': rulesFor(version),
})

/**
 * On the whole object and not on the field: the API server does not evaluate a rule of a field that
 * is removed or was absent.
 */
function rulesFor(version: PoolVersion): readonly Rule[] {
  const { spec } = fieldsOf[version]
  return [
    keeps('type', typeOf),
    ...('hostNetwork' in spec ? [keeps('hostNetwork', isTrue('hostNetwork')), edgeOnly] : []),
    ...('interConnectivity' in spec
      ? [keeps('interConnectivity', isTrue('interConnectivity'))]
      : []),
  ]
}

const typeOf = (self: string): string =>
  `(has(${self}.spec) && has(${self}.spec.type) ? ${self}.spec.type : 'Edge')`

const isTrue =
  (field: string) =>
  (self: string): string =>
    `(has(${self}.spec) && has(${self}.spec.${field}) && ${self}.spec.${field})`

const keeps = (field: string, value: (self: string) => string): Rule => ({
  rule: `${value('self')} == ${value('oldSelf')}`,
  message: `a pool keeps its ${field}: make another pool`,
  fieldPath: `.spec.${field}`,
  reason: 'FieldValueForbidden',
})

/** For new pools only: an existing one may be changed in its other fields. */
const edgeOnly: Rule = {
  rule: `oldSelf.hasValue() || !(${typeOf('self')} == 'Cloud' && ${isTrue('hostNetwork')('self')})`,
  message: 'a pool of type Cloud has no host network: use type: Edge',
  fieldPath: '.spec.hostNetwork',
  reason: 'FieldValueInvalid',
  optionalOldSelf: true,
}
