import t from 'tap'
import {
  unmetConditions,
  patched,
  pool,
  refusedFields,
  type PolicyRequest,
} from './evaluated-policy.ts'

const inPool = 'apps.openyurt.io/nodepool'
const wished = 'apps.openyurt.io/desired-nodepool'
const hostNetwork = 'nodepool.openyurt.io/hostnetwork'
const memory = 'nodepool.openyurt.io/previous-attributes'
const excluded = 'apps.openyurt.io/exclude-host-network-pool'

const node = (labels: object, annotations?: object) => ({
  metadata: { labels, ...(annotations && { annotations }) },
})
const pod = (annotations: object = {}, more: object = {}, spec: object = {}) => ({
  metadata: { annotations, ...more },
  spec,
})

/** A node enters the pool p. */
const enters: PolicyRequest = {
  operation: 'UPDATE',
  object: node({ [inPool]: 'p' }),
  oldObject: node({}),
}
const ourOwn = 'system:serviceaccount:nodehub-system:nodehub-cluster'
const mirror = { 'kubernetes.io/config.mirror': 'x' }
const generation = (generation: number) => ({ generation })
const controlled = { ownerReferences: [{ kind: 'ReplicaSet', controller: true }] }

void t.test('node policies apply to updates that concern their pool', async (t) => {
  for (const name of ['nodes', 'node-kind', 'node-wish', 'node-memory']) {
    t.strictSame(unmetConditions(name, enters), [], name)
    t.strictSame(unmetConditions(name, { ...enters, username: ourOwn }), ['is-not-our-own'], name)
    const status = { ...enters, oldObject: enters.object ?? {} }
    t.equal(unmetConditions(name, status)[0], 'concerns-its-pool', name)
  }
  for (const name of ['nodes', 'node-wish']) {
    const created = { operation: 'CREATE', object: node({}) } as const
    t.strictSame(unmetConditions(name, created), [], `${name}: a new one`)
    for (const label of [wished, hostNetwork, 'openyurt.io/is-edge-worker'])
      t.strictSame(unmetConditions(name, { ...enters, object: node({ [label]: 'x' }) }), [], label)
    const forgets = { ...enters, object: node({}), oldObject: node({}, { [memory]: '{}' }) }
    t.strictSame(unmetConditions(name, forgets), [], memory)
  }
  const other = { ...enters, params: pool('q') }
  t.strictSame(unmetConditions('node-kind', other), ['enters-this-pool'])
  t.strictSame(unmetConditions('node-memory', other), ['concerns-this-pool'])
  const moves = { ...enters, oldObject: node({ [inPool]: 'o' }) }
  t.strictSame(unmetConditions('node-kind', moves), ['enters-this-pool'])
  t.strictSame(
    unmetConditions('node-memory', moves),
    ['concerns-this-pool'],
    'the one it leaves is',
  )
  t.strictSame(unmetConditions('node-memory', { ...moves, params: pool('o') }), [])
  const remembers = { ...enters, object: node({ [inPool]: 'p' }, { [memory]: '{}' }) }
  t.strictSame(unmetConditions('node-memory', remembers), ['remembers-nothing'])
})

void t.test('policies for new nodes apply by the pool of the node', async (t) => {
  const labelled = node({ [hostNetwork]: 'true' })
  t.strictSame(unmetConditions('node-without-pool', { object: labelled }), [])
  t.strictSame(unmetConditions('node-without-pool', { object: node({}) }), ['has-the-label'])
  for (const label of [inPool, wished]) {
    const made = node({ [hostNetwork]: 'true', [label]: 'p' })
    t.strictSame(unmetConditions('node-without-pool', { object: made }), ['is-in-no-pool'])
    t.strictSame(unmetConditions('node-in-pool', { object: made }), [])
    t.strictSame(unmetConditions('node-in-pool', { object: made, params: pool('q') }), [
      'is-its-pool',
    ])
  }
})

void t.test(
  'pools are completed that are new, or written in a version that lacks fields',
  async (t) => {
    const asked = (operation: 'CREATE' | 'UPDATE', version: string) =>
      unmetConditions('pool-defaults', { operation, version })
    t.strictSame(asked('CREATE', 'v1beta2'), [])
    t.strictSame(asked('UPDATE', 'v1beta1'), [])
    t.strictSame(asked('UPDATE', 'v1beta2'), ['lacks-something'])
  },
)

void t.test('pod policies skip pods that do not concern them', async (t) => {
  const system = { namespace: 'kube-system' }
  const excludes = { [excluded]: 'true' }
  const rows: readonly (readonly [string, PolicyRequest, ...string[]])[] = [
    ['excluded-pods', { object: pod(excludes) }],
    ['excluded-pods', { object: pod(excludes), ...system }],
    ['excluded-pods', { object: pod() }, 'is-excluded'],
    ['excluded-pods', { object: pod({ ...excludes, ...mirror }) }, 'is-no-mirror-pod'],
    ['pod-network', { object: pod() }],
    ['pod-network', { object: pod(mirror) }, 'is-no-mirror-pod'],
    ['pod-network', { object: pod(), ...system }, 'is-no-part-of-the-cluster'],
    ['pod-network', { object: pod(excludes) }, 'is-not-excluded'],
    ['pod-network', { object: pod({}, {}, { hostNetwork: true }) }, 'is-on-the-pod-network'],
    ['pod-network', { object: pod(), params: pool('p', false) }, 'is-host-network-pool'],
    ['pod-network', { object: pod(), params: { metadata: { name: 'p' } } }, 'is-host-network-pool'],
  ]
  for (const [name, asked, ...by] of rows)
    t.strictSame(unmetConditions(name, asked), by, `${name}: ${by}`)
  for (const name of ['pod-guidance', 'pod-guidance-of-pool']) {
    t.strictSame(unmetConditions(name, { object: pod() }), [])
    t.strictSame(unmetConditions(name, { object: pod(mirror) }), ['is-no-mirror-pod'])
    t.strictSame(unmetConditions(name, { object: pod(), ...system }), ['is-no-part-of-the-cluster'])
    t.strictSame(unmetConditions(name, { object: pod({}, controlled) }), ['has-no-owner'])
    const update = { operation: 'UPDATE', oldObject: pod({}, generation(1)) } as const
    t.strictSame(unmetConditions(name, { ...update, object: pod({}, generation(2)) }), [])
    t.strictSame(unmetConditions(name, { ...update, object: pod({}, generation(1)) }), [
      'is-new-or-changed',
    ])
  }
  const standard = { object: pod(), params: pool('p', false) }
  t.strictSame(unmetConditions('pod-guidance-of-pool', standard), ['is-host-network-pool'])
  t.strictSame(unmetConditions('pod-guidance', standard), [])
})

const made = (spec: object, metadata: object = { name: 'p' }): PolicyRequest => ({
  operation: 'CREATE',
  object: { metadata, spec },
})
const changed = (oldSpec: object, spec: object): PolicyRequest => ({
  operation: 'UPDATE',
  object: { metadata: { name: 'p' }, spec },
  oldObject: { metadata: { name: 'p' }, spec: oldSpec },
})

void t.test('invalid pools and changes of type are refused', async (t) => {
  const taint = { key: 'a', effect: 'NoSchedule' }
  const full = {
    type: 'Edge',
    hostNetwork: true,
    interConnectivity: true,
    leaderElectionStrategy: 'mark',
    annotations: { 'Example.com/a': '?' },
    labels: { 'example.com/a': 'b', c: '' },
    taints: [taint, { key: 'b', value: 'c', effect: 'NoExecute' }],
  }
  t.strictSame(refusedFields('pools', made(full)), [])
  t.strictSame(refusedFields('pools', made({})), [])
  t.strictSame(refusedFields('pools', changed(full, { ...full, leaderReplicas: 2 })), [])
  for (const [spec, ...wrong] of [
    [{ type: 'Fog' }, 'spec.type'],
    [{ type: 'Cloud', hostNetwork: true }, 'spec.hostNetwork'],
    [{ leaderElectionStrategy: 'first' }, 'spec.leaderElectionStrategy'],
    [{ annotations: { '-a': 'b' } }, 'spec.annotations'],
    [{ annotations: { 'a/b/c': 'b' } }, 'spec.annotations'],
    [{ labels: { '-a': 'b' } }, 'spec.labels'],
    [{ labels: { a: '?' } }, 'spec.labels'],
    [{ labels: { [inPool]: 'p' } }, 'spec.labels'],
    [{ labels: { [hostNetwork]: 'true' } }, 'spec.labels'],
    [{ taints: [taint, { key: '-', effect: 'NoSchedule' }] }, 'spec.taints'],
    [{ taints: [{ key: 'a', effect: 'Never' }] }, 'spec.taints'],
    [{ taints: [{ key: 'a', value: '?', effect: 'NoSchedule' }] }, 'spec.taints'],
  ] as const) {
    t.strictSame(refusedFields('pools', made(spec)), wrong, JSON.stringify(spec))
    t.strictSame(refusedFields('pools', changed(spec, spec)), [], 'it may be as wrong as it was')
    t.strictSame(refusedFields('pools', changed(spec, { ...spec, leaderReplicas: 2 })), [])
  }
  t.strictSame(
    refusedFields('pools', changed({ annotations: { '-a': 'b' } }, { annotations: { '-a': 'c' } })),
    ['spec.annotations'],
  )
  t.strictSame(refusedFields('pools', changed({ type: 'Edge' }, { type: 'Cloud' })), ['spec.type'])
  t.strictSame(refusedFields('pools', changed({ type: 'Edge' }, {})), [], 'an edge pool by default')
  for (const field of ['hostNetwork', 'interConnectivity']) {
    t.strictSame(refusedFields('pools', changed({}, { [field]: true })), [`spec.${field}`])
    t.strictSame(refusedFields('pools', changed({ [field]: true }, {})), [`spec.${field}`])
    t.strictSame(refusedFields('pools', changed({}, { [field]: false })), [])
  }
})

void t.test('a node changes pools only by way of none, and keeps its memory', async (t) => {
  const change = (before: object, after: object, username = 'admin'): string[] =>
    refusedFields('nodes', { operation: 'UPDATE', oldObject: before, object: after, username })
  const [none, p, q] = [node({}), node({ [inPool]: 'p' }), node({ [inPool]: 'q' })]
  t.strictSame(change(none, p), [])
  t.strictSame(change(p, p), [])
  t.strictSame(change(p, none), [])
  t.strictSame(change(p, q), [`metadata.labels[${inPool}]`])
  t.strictSame(change(none, node({ [hostNetwork]: 'true' })), [`metadata.labels[${hostNetwork}]`])
  for (const hostNetwork of [true, false]) {
    const remembering = node({}, { [memory]: JSON.stringify({ nodePool: 'p', hostNetwork }) })
    const other = node({}, { [memory]: JSON.stringify({ nodePool: 'q', hostNetwork }) })
    const wrong = node({}, { [memory]: `{"hostNetwork": ${!hostNetwork}}` })
    t.strictSame(change(none, remembering), [])
    t.strictSame(change(remembering, other), [])
    for (const after of [none, wrong])
      t.strictSame(change(remembering, after), [`metadata.annotations[${memory}]`])
  }
  const edgeWorker = 'openyurt.io/is-edge-worker'
  const worker = node({ [edgeWorker]: 'true' })
  t.strictSame(change(none, worker), [`metadata.labels[${edgeWorker}]`])
  t.strictSame(change(none, worker, 'system:node:edge-1'), [])
  t.strictSame(change(worker, worker), [])
})

void t.test('a node that was of one kind enters no pool of the other', async (t) => {
  const remembering = (hostNetwork: boolean) =>
    node({}, { [memory]: `{"hostNetwork":${hostNetwork}}` })
  const entering = (oldObject: object, hostNetwork: boolean): number =>
    refusedFields('node-kind', { ...enters, oldObject, params: pool('p', hostNetwork) }).length
  for (const kind of [true, false]) {
    t.equal(entering(remembering(kind), kind), 0)
    t.equal(entering(remembering(kind), !kind), 1)
    t.equal(entering(node({}), kind), 0)
  }
  const labelled = node({ [hostNetwork]: 'true' })
  t.equal(entering(labelled, false), 1, 'its label says what it was')
  t.equal(entering(labelled, true), 0)
  t.equal(
    entering(node({ [hostNetwork]: 'true' }, { [memory]: '{"hostNetwork":false}' }), false),
    0,
  )
})

const shared = [
  { group: '', version: 'v1', resource: 'services' },
  { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
]

void t.test('a new pool gets all its defaults', async (t) => {
  const typeLabel = 'nodepool.openyurt.io/type'
  const defaults = {
    type: 'Edge',
    leaderElectionStrategy: 'random',
    leaderReplicas: 1,
    poolScopeMetadata: shared,
  }
  t.strictSame(patched('pool-defaults', { object: { metadata: { name: 'p' } } }), {
    metadata: { name: 'p', labels: { [typeLabel]: 'edge' } },
    spec: defaults,
  })
  const full = {
    type: 'Cloud',
    leaderElectionStrategy: 'mark',
    leaderReplicas: 3,
    poolScopeMetadata: [{ group: 'apps', version: 'v1', resource: 'deployments' }, shared[0]],
  }
  t.strictSame(
    patched('pool-defaults', {
      object: { metadata: { labels: { a: 'b' } }, spec: full, status: { readyNodeNum: 1 } },
    }),
    {
      metadata: { labels: { a: 'b', [typeLabel]: 'cloud' } },
      spec: { ...full, poolScopeMetadata: [...full.poolScopeMetadata, shared[1]] },
      status: { readyNodeNum: 1 },
    },
  )
})

void t.test('fields that a version lacks keep their values', async (t) => {
  const asked = (version: string, oldSpec: object, spec: object): PolicyRequest => ({
    operation: 'UPDATE',
    version,
    object: { metadata: {}, spec },
    oldObject: { metadata: {}, spec: oldSpec },
  })
  const older = { type: 'Edge', hostNetwork: true, interConnectivity: true, leaderReplicas: 3 }
  t.match(patched('pool-defaults', asked('v1alpha1', older, { type: 'Edge' })), { spec: older })
  t.match(patched('pool-defaults', asked('v1beta1', older, { type: 'Edge' })), {
    spec: { hostNetwork: undefined, interConnectivity: true, leaderReplicas: 3 },
  })
  const made = { type: 'Edge', interConnectivity: true, hostNetwork: true }
  t.match(patched('pool-defaults', asked('v1alpha1', { type: 'Edge' }, made)), {
    spec: { interConnectivity: undefined, hostNetwork: undefined },
  })
})

void t.test('a node gets pool labels and memory', async (t) => {
  const wishes = node({ [wished]: 'p' })
  t.match(patched('node-wish', { object: wishes }), node({ [inPool]: 'p', [wished]: 'p' }))
  const wishing: PolicyRequest = { operation: 'UPDATE', object: wishes, oldObject: node({}) }
  t.match(patched('node-wish', wishing), node({ [inPool]: 'p' }))
  t.strictSame(
    patched('node-wish', { ...wishing, oldObject: wishes }),
    wishes,
    'a wish counts when it is uttered',
  )
  const chosen = node({ [inPool]: 'q', [wished]: 'p' })
  t.strictSame(patched('node-wish', { object: chosen }), chosen)

  const labelled = node({ [hostNetwork]: 'true', a: 'b' })
  t.strictSame(patched('node-without-pool', { object: labelled }), node({ a: 'b' }))

  const made = node({ [inPool]: 'p' })
  const remembering = (hostNetwork: boolean) => ({
    [memory]: `{"nodePool":"p","hostNetwork":${hostNetwork}${hostNetwork ? ',"labelled":true' : ''}}`,
  })
  t.strictSame(
    patched('node-in-pool', { object: made }),
    node({ [inPool]: 'p', [hostNetwork]: 'true' }, remembering(true)),
  )
  const standard = { params: pool('p', false) }
  t.strictSame(
    patched('node-in-pool', { object: made, ...standard }),
    node({ [inPool]: 'p' }, remembering(false)),
  )
  t.strictSame(
    patched('node-in-pool', {
      object: node({ [inPool]: 'p', [hostNetwork]: 'true' }, { a: 'b' }),
      ...standard,
    }),
    node({ [inPool]: 'p' }, { a: 'b', ...remembering(false) }),
  )
  t.strictSame(
    patched('node-memory', enters),
    node({ [inPool]: 'p' }, { [memory]: '{"nodePool":"p","hostNetwork":true}' }),
  )
})
