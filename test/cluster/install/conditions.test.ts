import { Environment } from '@marcbachmann/cel-js'
import t from 'tap'
import { clusterManifests } from '../../../src/cluster/install/manifests.ts'
import type { JsonObject } from '../../../src/kube/json.ts'
import { listAt, textAt } from '../../../src/kube/json-at.ts'

/** What a field that may be missing is in CEL. */
interface Optional {
  readonly hasValue: () => boolean
  readonly value: () => unknown
}

const cel = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true })
  // The library cannot compare two such fields; API servers do.
  .registerOperator('optional == optional', (a: Optional, b: Optional) =>
    a.hasValue() && b.hasValue() ? a.value() === b.value() : a.hasValue() === b.hasValue(),
  )

const policies = (
  JSON.parse(
    JSON.stringify(
      clusterManifests({
        name: 'nodehub-cluster',
        namespace: 'nodehub-system',
        image: 'nodehub:1',
        admission: 'policies',
        podHostNetwork: true,
      }),
    ),
  ) as JsonObject[]
).filter(({ kind }) => textAt(kind).endsWith('AdmissionPolicy'))

interface Asked {
  readonly operation?: 'CREATE' | 'UPDATE'
  readonly namespace?: string
  readonly username?: string
  readonly version?: string
  readonly object?: object
  readonly oldObject?: object
  readonly params?: object
}

/** The conditions of a policy that keep an API server from asking it. */
function kept(name: string, asked: Asked): string[] {
  const { operation = 'CREATE', namespace = 'default', username = 'kubelet' } = asked
  const variables = {
    request: {
      operation,
      namespace,
      userInfo: { username },
      requestKind: { version: asked.version ?? 'v1' },
    },
    object: asked.object ?? { metadata: {} },
    oldObject: asked.oldObject ?? { metadata: {} },
    params: asked.params ?? pool('p'),
  }
  const policy = policies.find((each) => textAt(each, 'metadata', 'name') === `nodehub-${name}`)
  if (policy === undefined) throw new Error(`there is no policy ${name}`)
  return listAt(policy, 'spec', 'matchConditions')
    .filter((each) => cel.evaluate(textAt(each, 'expression'), variables) !== true)
    .map((each) => textAt(each, 'name'))
}

const pool = (name: string, hostNetwork = true) => ({ metadata: { name }, spec: { hostNetwork } })
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
const enters: Asked = {
  operation: 'UPDATE',
  object: node({ [inPool]: 'p' }),
  oldObject: node({}),
}
const ourOwn = 'system:serviceaccount:nodehub-system:nodehub-cluster'
const mirror = { 'kubernetes.io/config.mirror': 'x' }
const generation = (generation: number) => ({ generation })
const controlled = { ownerReferences: [{ kind: 'ReplicaSet', controller: true }] }

void t.test('policies about nodes are asked about what changes their pool', async (t) => {
  for (const name of ['nodes', 'node-kind', 'node-wish', 'node-memory']) {
    t.strictSame(kept(name, enters), [], name)
    t.strictSame(kept(name, { ...enters, username: ourOwn }), ['is-not-our-own'], name)
    const status = { ...enters, oldObject: enters.object ?? {} }
    t.equal(kept(name, status)[0], 'concerns-its-pool', name)
  }
  for (const name of ['nodes', 'node-wish']) {
    const created = { operation: 'CREATE', object: node({}) } as const
    t.strictSame(kept(name, created), [], `${name}: a new one`)
    for (const label of [wished, hostNetwork, 'openyurt.io/is-edge-worker'])
      t.strictSame(kept(name, { ...enters, object: node({ [label]: 'x' }) }), [], label)
    const forgets = { ...enters, object: node({}), oldObject: node({}, { [memory]: '{}' }) }
    t.strictSame(kept(name, forgets), [], memory)
  }
  const other = { ...enters, params: pool('q') }
  t.strictSame(kept('node-kind', other), ['enters-this-pool'])
  t.strictSame(kept('node-memory', other), ['concerns-this-pool'])
  const moves = { ...enters, oldObject: node({ [inPool]: 'o' }) }
  t.strictSame(kept('node-kind', moves), ['enters-this-pool'])
  t.strictSame(kept('node-memory', moves), ['concerns-this-pool'], 'the one it leaves is')
  t.strictSame(kept('node-memory', { ...moves, params: pool('o') }), [])
  const remembers = { ...enters, object: node({ [inPool]: 'p' }, { [memory]: '{}' }) }
  t.strictSame(kept('node-memory', remembers), ['remembers-nothing'])
})

void t.test('policies about new nodes are asked by the pool that they are made in', async (t) => {
  const labelled = node({ [hostNetwork]: 'true' })
  t.strictSame(kept('node-without-pool', { object: labelled }), [])
  t.strictSame(kept('node-without-pool', { object: node({}) }), ['has-the-label'])
  for (const label of [inPool, wished]) {
    const made = node({ [hostNetwork]: 'true', [label]: 'p' })
    t.strictSame(kept('node-without-pool', { object: made }), ['is-in-no-pool'])
    t.strictSame(kept('node-in-pool', { object: made }), [])
    t.strictSame(kept('node-in-pool', { object: made, params: pool('q') }), ['is-its-pool'])
  }
})

void t.test(
  'pools are completed that are new, or written in a version that lacks fields',
  async (t) => {
    const asked = (operation: 'CREATE' | 'UPDATE', version: string) =>
      kept('pool-defaults', { operation, version })
    t.strictSame(asked('CREATE', 'v1beta2'), [])
    t.strictSame(asked('UPDATE', 'v1beta1'), [])
    t.strictSame(asked('UPDATE', 'v1beta2'), ['lacks-something'])
  },
)

void t.test('policies about pods leave alone what is not theirs', async (t) => {
  const system = { namespace: 'kube-system' }
  const excludes = { [excluded]: 'true' }
  const rows: readonly (readonly [string, Asked, ...string[]])[] = [
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
  for (const [name, asked, ...by] of rows) t.strictSame(kept(name, asked), by, `${name}: ${by}`)
  for (const name of ['pod-guidance', 'pod-guidance-of-pool']) {
    t.strictSame(kept(name, { object: pod() }), [])
    t.strictSame(kept(name, { object: pod(mirror) }), ['is-no-mirror-pod'])
    t.strictSame(kept(name, { object: pod(), ...system }), ['is-no-part-of-the-cluster'])
    t.strictSame(kept(name, { object: pod({}, controlled) }), ['has-no-owner'])
    const update = { operation: 'UPDATE', oldObject: pod({}, generation(1)) } as const
    t.strictSame(kept(name, { ...update, object: pod({}, generation(2)) }), [])
    t.strictSame(kept(name, { ...update, object: pod({}, generation(1)) }), ['is-new-or-changed'])
  }
  const standard = { object: pod(), params: pool('p', false) }
  t.strictSame(kept('pod-guidance-of-pool', standard), ['is-host-network-pool'])
  t.strictSame(kept('pod-guidance', standard), [])
})
