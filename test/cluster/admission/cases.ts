import { keptOffHostNetwork } from '../../../src/cluster/admission/pod.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt } from '../../../src/api/kube/json-at.ts'

export type AdmissionMode = 'webhooks' | 'while no webhook answers'

/**
 * One request to a cluster with the pools and nodes of `world`, sent as a dry run, and what comes
 * of it.
 */
export interface Case {
  readonly what: string
  readonly method: 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: JsonObject
  /** Who asks, in place of the administrator. */
  readonly as?: string
  readonly status: number
  /** In the message of a refusal. */
  readonly said?: RegExp
  /** What of the answer is looked at, and what it says: members that are not there are `null`. */
  readonly shown?: readonly (readonly [path: readonly string[], value: Json])[]
  /**
   * What comes of it while no webhook answers; absent: the same. `any`: nothing that the test is
   * about.
   */
  readonly down?: { readonly status: number; readonly said?: RegExp } | 'any'
}

const nodepool = 'apps.openyurt.io/nodepool'
const desired = 'apps.openyurt.io/desired-nodepool'
const hostnetwork = 'nodepool.openyurt.io/hostnetwork'
const edgeWorker = 'openyurt.io/is-edge-worker'
const previous = 'nodepool.openyurt.io/previous-attributes'
const carried = 'nodepool.openyurt.io/fields-of-other-versions'

const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'
const nodes = '/api/v1/nodes'

const poolOf = (name: string, spec: JsonObject, version = 'v1beta2'): JsonObject => ({
  apiVersion: `apps.openyurt.io/${version}`,
  kind: 'NodePool',
  metadata: { name },
  spec,
})

const nodeOf = (
  name: string,
  labels: JsonObject = {},
  annotations: JsonObject = {},
): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels, annotations },
})

const full = {
  type: 'Edge',
  interConnectivity: true,
  enableLeaderElection: true,
  leaderElectionStrategy: 'mark',
  leaderReplicas: 3,
  leaderNodeLabelSelector: { a: 'b' },
}

/** What is there before the cases, made while webhooks answer. */
export const world = {
  pools: [
    poolOf('host', { hostNetwork: true }),
    poolOf('host-too', { hostNetwork: true }),
    poolOf('standard', {}),
    poolOf('full', full),
    poolOf('empty', {}),
  ],
  nodes: [
    nodeOf('in-host', { [nodepool]: 'host' }),
    nodeOf('in-standard', { [nodepool]: 'standard' }),
    nodeOf('orphan'),
    nodeOf('left-host', { [nodepool]: 'host' }),
    nodeOf('left-standard', { [nodepool]: 'standard' }),
    // Nothing is remembered of it, as its pool could not be read.
    nodeOf('left-gone', { [nodepool]: 'gone', [hostnetwork]: 'true' }),
  ],
}

const memory = (nodePool: string, hostNetwork: boolean): Json =>
  `{"nodePool":"${nodePool}","hostNetwork":${hostNetwork}${hostNetwork ? ',"labelled":true' : ''}}`

const label = (name: string): string[] => ['metadata', 'labels', name]
const annotation = (name: string): string[] => ['metadata', 'annotations', name]

/** A webhook with the policy Fail that does not answer. */
const unanswered = { status: 500, said: /failed calling webhook/ }

const create = (path: string, what: string, body: JsonObject): Case => ({
  what,
  method: 'POST',
  path,
  body,
  status: 201,
})

const patch = (path: string, what: string, body: JsonObject): Case => ({
  what,
  method: 'PATCH',
  path,
  body,
  status: 200,
})

const newPool = (what: string, spec: JsonObject): Case => create(pools, what, poolOf('new', spec))

const newNode = (what: string, labels: JsonObject): Case =>
  create(nodes, what, nodeOf('new', labels))

/** A change of labels of a node, or through its status. */
const relabel = (node: string, what: string, ...entries: [string, Json][]): Case =>
  patch(`${nodes}/${node}`, what, { metadata: { labels: Object.fromEntries(entries) } })

const refused = (said: RegExp, asked: Case, down?: Case['down']): Case => ({
  ...asked,
  status: 422,
  said,
  ...(down && { down }),
})

/** What v1beta1 has no field for. */
const keptWhole: readonly [readonly string[], Json] = [
  annotation(carried),
  JSON.stringify({
    spec: {
      ...full,
      type: undefined,
      poolScopeMetadata: [
        { group: '', resource: 'services', version: 'v1' },
        { group: 'discovery.k8s.io', resource: 'endpointslices', version: 'v1' },
      ],
    },
  }),
]

export const poolCases: readonly Case[] = [
  {
    ...newPool('a new pool has its defaults', {}),
    shown: [
      [['spec', 'type'], 'Edge'],
      [['spec', 'leaderElectionStrategy'], 'random'],
      [['spec', 'leaderReplicas'], 1],
      [
        ['spec', 'poolScopeMetadata'],
        [
          { group: '', version: 'v1', resource: 'services' },
          { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
        ],
      ],
      [label('nodepool.openyurt.io/type'), 'edge'],
    ],
    down: unanswered,
  },
  {
    ...newPool('a pool of type Cloud, too', { type: 'Cloud', leaderReplicas: 2 }),
    shown: [
      [label('nodepool.openyurt.io/type'), 'cloud'],
      [['spec', 'leaderReplicas'], 2],
    ],
    down: unanswered,
  },
  {
    ...newPool('what is shared already is not shared twice', {
      poolScopeMetadata: [{ group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }],
    }),
    shown: [
      [
        ['spec', 'poolScopeMetadata'],
        [
          { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
          { group: '', version: 'v1', resource: 'services' },
        ],
      ],
    ],
    down: unanswered,
  },
  refused(
    /use type: Edge/,
    newPool('a Cloud pool has no host network', { type: 'Cloud', hostNetwork: true }),
    unanswered,
  ),
  refused(
    /use type: Edge/,
    create('/apis/apps.openyurt.io/v1alpha1/nodepools', 'nor has it in the words of v1alpha1', {
      ...poolOf('new', { type: 'Cloud' }, 'v1alpha1'),
      metadata: { name: 'new', annotations: { [hostnetwork]: 'true' } },
    }),
    { status: 500, said: /conversion webhook/ },
  ),
  refused(/Fog/, newPool('there is no type Fog', { type: 'Fog' }), unanswered),
  refused(
    /dice/,
    newPool('there is no strategy dice', { leaderElectionStrategy: 'dice' }),
    unanswered,
  ),
  refused(
    /spec\.annotations/,
    newPool('an annotation needs a name', { annotations: { '-&#foo': '' } }),
    unanswered,
  ),
  refused(
    /spec\.labels/,
    newPool('a label needs a value that can be', { labels: { a: 'not ok!' } }),
    unanswered,
  ),
  refused(
    /spec\.labels.*follow/,
    newPool('a pool does not label its nodes as another', { labels: { [nodepool]: 'b' } }),
    unanswered,
  ),
  refused(
    /spec\.taints/,
    newPool('a taint needs a name', { taints: [{ key: '-', effect: 'NoSchedule' }] }),
    unanswered,
  ),
  refused(
    /keeps its hostNetwork/,
    patch(`${pools}/standard`, 'a pool keeps its network', { spec: { hostNetwork: true } }),
  ),
  refused(
    /keeps its hostNetwork/,
    patch(`${pools}/host`, 'also where it is taken out', { spec: { hostNetwork: null } }),
  ),
  refused(
    /keeps its type/,
    patch(`${pools}/standard`, 'a pool keeps its type', { spec: { type: 'Cloud' } }),
  ),
  refused(
    /keeps its interConnectivity/,
    patch(`${pools}/full`, 'a pool keeps its connectivity', { spec: { interConnectivity: false } }),
  ),
  {
    ...patch(`${pools}/host`, 'labels are changed', { spec: { labels: { a: 'b' } } }),
    shown: [[['spec', 'labels', 'a'], 'b']],
    down: unanswered,
  },
  {
    ...patch(
      '/apis/apps.openyurt.io/v1beta1/nodepools/full',
      'a patch through an older version changes that alone',
      { spec: { labels: { a: 'b' } } },
    ),
    shown: [keptWhole],
    down: 'any',
  },
  {
    ...patch(
      '/apis/apps.openyurt.io/v1beta1/nodepools/full',
      'also where its writer drops what is carried',
      {
        metadata: { annotations: { [carried]: null } },
        spec: { labels: { a: 'b' } },
      },
    ),
    shown: [[['spec', 'labels', 'a'], 'b'], keptWhole],
    down: 'any',
  },
  {
    ...patch(
      '/apis/apps.openyurt.io/v1alpha1/nodepools/standard',
      'v1alpha1 does not change the network',
      {
        metadata: { annotations: { [hostnetwork]: 'true' } },
        spec: { labels: { a: 'b' } },
      },
    ),
    shown: [
      [annotation(hostnetwork), null],
      [['spec', 'labels', 'a'], 'b'],
    ],
    down: 'any',
  },
  {
    what: 'a pool with nodes stays',
    method: 'DELETE',
    path: `${pools}/host`,
    status: 403,
    said: /in the pool: take them out/,
    down: unanswered,
  },
  {
    what: 'a pool without nodes goes',
    method: 'DELETE',
    path: `${pools}/empty`,
    status: 200,
    down: unanswered,
  },
]

export const nodeCases: readonly Case[] = [
  {
    ...newNode('a new node of a host-network pool', { [nodepool]: 'host' }),
    shown: [
      [label(hostnetwork), 'true'],
      [annotation(previous), memory('host', true)],
    ],
    down: { status: 201 },
  },
  {
    ...newNode('of a standard pool, with a label that is wrong', {
      [nodepool]: 'standard',
      [hostnetwork]: 'true',
    }),
    shown: [
      [label(hostnetwork), null],
      [annotation(previous), memory('standard', false)],
    ],
    down: { status: 201 },
  },
  {
    ...newNode('with a wish', { [desired]: 'host' }),
    shown: [
      [label(nodepool), 'host'],
      [label(hostnetwork), 'true'],
    ],
    down: { status: 201 },
  },
  {
    ...newNode('with a wish and a pool', { [desired]: 'host', [nodepool]: 'standard' }),
    shown: [
      [label(nodepool), 'standard'],
      [label(hostnetwork), null],
    ],
    down: { status: 201 },
  },
  {
    ...newNode('of a pool that is not there', { [nodepool]: 'gone', [hostnetwork]: 'true' }),
    shown: [
      [label(nodepool), 'gone'],
      [label(hostnetwork), 'true'],
      [annotation(previous), null],
    ],
  },
  {
    ...newNode('of no pool, with a label that is wrong', { [hostnetwork]: 'true' }),
    shown: [[label(hostnetwork), null]],
    down: { status: 201 },
  },
  {
    ...create(nodes, 'without anything', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'new' },
    }),
    shown: [[annotation(previous), null]],
  },
  {
    ...create(
      nodes,
      'of a kubelet that registers',
      nodeOf('edge-9', { [nodepool]: 'host', [hostnetwork]: 'true' }),
    ),
    as: 'system:node:edge-9',
    shown: [[label(hostnetwork), 'true']],
  },
  refused(
    /take this label off before another/,
    relabel('in-standard', 'a node is not moved', [nodepool, 'host']),
  ),
  refused(
    /take this label off before another/,
    relabel('in-host/status', 'nor by way of its status', [nodepool, 'standard']),
  ),
  {
    ...relabel('in-host', 'a node leaves its pool', [nodepool, null]),
    shown: [
      [label(nodepool), null],
      [label(hostnetwork), 'true'],
    ],
  },
  refused(
    /only the controller/,
    relabel('in-host', 'it keeps the label', [nodepool, null], [hostnetwork, null]),
  ),
  refused(
    /only the controller/,
    relabel('in-host/status', 'also by way of its status', [hostnetwork, null]),
  ),
  refused(
    /only the controller/,
    relabel('orphan', 'no user puts the label on', [hostnetwork, 'true']),
  ),
  {
    ...refused(
      /only the controller/,
      relabel('orphan/status', 'nor does its kubelet', [hostnetwork, 'true']),
    ),
    as: 'system:node:orphan',
  },
  {
    ...relabel('orphan', 'the controller does', [hostnetwork, 'true']),
    as: 'controller',
    shown: [[label(hostnetwork), 'true']],
  },
  refused(
    /was in a standard pool and .* is a host-network pool: delete the Node/,
    relabel('left-standard', 'a standard node enters no host-network pool', [nodepool, 'host']),
  ),
  refused(/was in a standard pool/, relabel('left-standard', 'nor by a wish', [desired, 'host']), {
    status: 200,
  }),
  refused(
    /was in a host-network pool and .* is a standard pool: delete the Node/,
    relabel('left-host', 'a host-network node enters no standard pool', [nodepool, 'standard']),
  ),
  refused(
    /was in a host-network pool/,
    relabel('left-gone', 'nor by the label alone', [nodepool, 'standard']),
  ),
  {
    ...relabel('left-host', 'it enters another of its kind', [nodepool, 'host-too']),
    shown: [[annotation(previous), memory('host', true)]],
  },
  refused(
    /stays remembered/,
    patch(`${nodes}/left-host`, 'what it was is not forgotten', {
      metadata: { annotations: { [previous]: null } },
    }),
  ),
  refused(
    /stays remembered/,
    patch(`${nodes}/left-standard`, 'nor that it was a standard one', {
      metadata: { annotations: { [previous]: null } },
    }),
  ),
  refused(
    /stays remembered/,
    patch(`${nodes}/left-standard`, 'nor is it told otherwise', {
      metadata: { annotations: { [previous]: memory('standard', true) } },
    }),
  ),
  {
    ...relabel('orphan', 'an orphan enters a pool', [nodepool, 'host']),
    shown: [
      [annotation(previous), '{"nodePool":"host","hostNetwork":true}'],
      [label(hostnetwork), null],
    ],
    down: { status: 200 },
  },
  {
    ...relabel('orphan/status', 'also by way of its status', [nodepool, 'standard']),
    shown: [[annotation(previous), '{"nodePool":"standard","hostNetwork":false}']],
    down: { status: 200 },
  },
  {
    ...relabel('orphan', 'or desires to', [desired, 'standard']),
    shown: [
      [label(nodepool), 'standard'],
      [annotation(previous), '{"nodePool":"standard","hostNetwork":false}'],
    ],
    down: { status: 200 },
  },
  {
    ...relabel('orphan', 'or enters one that is not there', [nodepool, 'gone']),
    shown: [
      [label(nodepool), 'gone'],
      [annotation(previous), null],
    ],
  },
  refused(
    /only nodes themselves/,
    relabel('orphan', 'a user does not make it an edge worker', [edgeWorker, 'true']),
  ),
  {
    ...relabel('orphan', 'but by itself', [edgeWorker, 'true']),
    as: 'system:node:orphan',
    shown: [[label(edgeWorker), 'true']],
  },
  {
    ...patch(`${nodes}/in-host`, 'what is no matter of pools is changed', {
      metadata: { labels: { x: 'y' } },
      spec: { unschedulable: true },
    }),
    shown: [[label('x'), 'y']],
  },
]

const zone = { key: 'zone', operator: 'In', values: ['a'] }
const off = { key: hostnetwork, operator: 'NotIn', values: ['true'] }
const byName = { key: 'metadata.name', operator: 'In', values: ['edge-1'] }
const required = (...nodeSelectorTerms: Json[]): JsonObject => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
})
const preferred = {
  preferredDuringSchedulingIgnoredDuringExecution: [
    { weight: 1, preference: { matchExpressions: [zone] } },
  ],
}

const affinities: Readonly<Record<string, JsonObject | undefined>> = {
  'no affinity': undefined,
  'no node affinity': { podAntiAffinity: {} },
  'a preferred one only': { nodeAffinity: preferred },
  'a term': required({ matchExpressions: [zone] }),
  'terms, one of which says so': required(
    { matchExpressions: [zone, off] },
    { matchExpressions: [zone] },
  ),
  'all of which say so': required({ matchExpressions: [off] }, { matchExpressions: [zone, off] }),
  'a term of fields': required({ matchFields: [byName] }),
  'a term that matches nothing': required({}),
  'one of them beside another': required({}, { matchExpressions: [zone], matchFields: [byName] }),
  'a term that nearly says so': required({ matchExpressions: [{ ...off, values: ['true', 'x'] }] }),
}

const podOf = (affinity: JsonObject | undefined, annotations: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'new', namespace: 'default', annotations },
  spec: { containers: [{ name: 'a', image: 'a' }], ...(affinity && { affinity }) },
})

const exclude = 'apps.openyurt.io/exclude-host-network-pool'
const mirror = { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.source': 'file' }
const pods = '/api/v1/namespaces/default/pods'

export const podCases: readonly Case[] = [
  ...Object.entries(affinities).map(([what, affinity]): Case => {
    const pod = podOf(affinity, { [exclude]: 'true' })
    const kept = valueAt(keptOffHostNetwork(pod), 'spec', 'affinity') ?? null
    return {
      ...create(pods, `an excluded pod with ${what}`, pod),
      shown: [[['spec', 'affinity'], kept]],
      down: { status: 201 },
    }
  }),
  ...['True', '', 'false'].map((value): Case => ({
    ...create(
      pods,
      `a pod that says ${JSON.stringify(value)}`,
      podOf(undefined, { [exclude]: value }),
    ),
    shown: [[['spec', 'affinity'], null]],
  })),
  {
    ...create(pods, 'a pod that says nothing', podOf(required({ matchExpressions: [zone] }), {})),
    shown: [[['spec', 'affinity'], required({ matchExpressions: [zone] })]],
  },
  {
    ...create(pods, 'a mirror pod', {
      ...podOf(undefined, { [exclude]: 'true', ...mirror }),
      spec: { nodeName: 'in-host', containers: [{ name: 'a', image: 'a' }] },
    }),
    shown: [[['spec', 'affinity'], null]],
  },
  refused(
    /at least one node selector term/,
    create(
      pods,
      'an excluded pod with no terms, which the API server refuses',
      podOf(required(), { [exclude]: 'true' }),
    ),
  ),
]

const inPools = (...values: string[]) => ({
  matchExpressions: [{ key: nodepool, operator: 'In', values }],
})

const onNodes = (...values: string[]) => ({
  matchFields: [{ key: 'metadata.name', operator: 'In', values }],
})

const selectsHost = { nodeSelector: { [nodepool]: 'host' } }

const withPorts = (...ports: Json[]): JsonObject => ({
  ...selectsHost,
  containers: [{ name: 'a', image: 'a', ports }],
})

interface Wishing {
  readonly spec?: JsonObject
  readonly labels?: JsonObject
  readonly annotations?: JsonObject
  readonly namespace?: string
}

/** Pods that come onto the network of the pool that they name. */
const joining: Readonly<Record<string, Wishing>> = {
  'its wish': { labels: { [desired]: 'host' } },
  'its wish as first proposed': { labels: { 'nodepool.openyurt.io/desired-nodepool': 'host' } },
  'the label of YurtAppSet': { labels: { 'apps.openyurt.io/pool-name': 'host-too' } },
  'its node selector': { spec: selectsHost },
  'its affinity': { spec: { affinity: required(inPools('host')) } },
  'each alternative of it': {
    spec: { affinity: required(inPools('host'), { ...inPools('host'), ...onNodes('x') }) },
  },
  'an alternative beside one that matches nothing': {
    spec: { affinity: required({}, inPools('host')) },
  },
  'a requirement beside others': {
    spec: {
      affinity: required({ matchExpressions: [zone, off, ...inPools('host').matchExpressions] }),
    },
  },
  'two ways to one pool': { spec: selectsHost, labels: { 'apps.openyurt.io/pool-name': 'host' } },
  'its node, as DaemonSets do': { spec: { affinity: required(onNodes('in-host')) } },
  'its nodeName, without a scheduler': { spec: { nodeName: 'in-host' } },
  'a pool, with the same port of the host': {
    spec: withPorts({ containerPort: 80, hostPort: 80 }),
  },
}

/** Pods that do not. */
const apart: Readonly<Record<string, Wishing>> = {
  'a node of a standard pool': { spec: { nodeName: 'in-standard' } },
  'a node in no pool': { spec: { affinity: required(onNodes('orphan')) } },
  'a node that is not there': { spec: { affinity: required(onNodes('gone')) } },
  'one of two nodes': { spec: { affinity: required(onNodes('in-host'), onNodes('orphan')) } },
  'a pool that is not there': { spec: { nodeSelector: { [nodepool]: 'gone' } } },
  'a pool that is not there, and a node': {
    spec: { nodeName: 'in-host', nodeSelector: { [nodepool]: 'gone' } },
  },
  'a standard pool': { labels: { [desired]: 'standard' } },
  'two pools': { spec: selectsHost, labels: { [desired]: 'standard' } },
  'two host-network pools': { spec: selectsHost, labels: { [desired]: 'host-too' } },
  'a pool out of two': { spec: { affinity: required(inPools('host', 'standard')) } },
  'a pool or another': { spec: { affinity: required(inPools('host'), inPools('standard')) } },
  'a pool or none': { spec: { affinity: required(inPools('host'), { matchExpressions: [zone] }) } },
  'a pool that it is kept off': {
    spec: {
      affinity: required({
        matchExpressions: [{ key: nodepool, operator: 'NotIn', values: ['host'] }],
      }),
    },
  },
  'a pool, and is excluded': { spec: selectsHost, annotations: { [exclude]: 'true' } },
  'a pool, in kube-system': { spec: selectsHost, namespace: 'kube-system' },
  'a pool, with user namespaces': { spec: { ...selectsHost, hostUsers: false } },
  'a pool, on Windows': { spec: { ...selectsHost, os: { name: 'windows' } } },
  'a pool, and sets a sysctl of the network': {
    spec: {
      ...selectsHost,
      securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] },
    },
  },
  'a pool, with another port of the host': { spec: withPorts({ containerPort: 80, hostPort: 81 }) },
}

const wishing = ({
  spec,
  labels = {},
  annotations = {},
  namespace = 'default',
}: Wishing): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'new', namespace, labels, annotations },
  spec: { containers: [{ name: 'a', image: 'a' }], automountServiceAccountToken: false, ...spec },
})

/** What becomes of pods where they are put on the network of their pool, which is asked for. */
export const propagationCases: readonly Case[] = [
  ...[joining, apart].flatMap((wishes) =>
    Object.entries(wishes).map(([what, pod]): Case => ({
      ...create(
        pods.replace('default', pod.namespace ?? 'default'),
        `a pod with ${what}`,
        wishing(pod),
      ),
      shown: [[['spec', 'hostNetwork'], wishes === joining || null]],
      down: { status: 201 },
    })),
  ),
  {
    ...create(
      pods,
      'a pod on the network of its pool has the ports of its host',
      wishing({ spec: withPorts({ containerPort: 8080 }, { containerPort: 53, protocol: 'UDP' }) }),
    ),
    shown: [
      [['spec', 'hostNetwork'], true],
      [['spec', 'containers', '0', 'ports', '0', 'hostPort'], 8080],
      [['spec', 'containers', '0', 'ports', '1', 'hostPort'], 53],
    ],
    down: { status: 201 },
  },
  {
    ...create(pods, 'one that asks for it itself', wishing({ spec: { hostNetwork: true } })),
    shown: [[['spec', 'hostNetwork'], true]],
  },
  {
    ...create(pods, 'a mirror pod on a node of such a pool', {
      ...podOf(undefined, mirror),
      spec: { nodeName: 'in-host', containers: [{ name: 'a', image: 'a' }] },
    }),
    shown: [[['spec', 'hostNetwork'], null]],
  },
]
