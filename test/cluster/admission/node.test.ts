import t from 'tap'
import type { PoolLookup } from '../../../src/cluster/admission/lookup.ts'
import {
  mutateNodeUpdate,
  mutateNewNode,
  poolOfUpdate,
  poolOfNewNode,
  validateNodeUpdate,
} from '../../../src/cluster/admission/node.ts'
import { previousAttributesAnnotation } from '../../../src/cluster/previous-attributes.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'

const nodepool = 'apps.openyurt.io/nodepool'
const desired = 'apps.openyurt.io/desired-nodepool'
const hostnetwork = 'nodepool.openyurt.io/hostnetwork'
const edgeWorker = 'openyurt.io/is-edge-worker'

const node = (labels?: Record<string, string>, remembered?: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'edge-1',
    ...(labels && { labels }),
    ...(remembered !== undefined && {
      annotations: { [previousAttributesAnnotation]: remembered },
    }),
  },
})

const pool = (hostNetwork: boolean): PoolLookup => ({
  apiVersion: 'apps.openyurt.io/v1beta2',
  kind: 'NodePool',
  metadata: { name: 'p' },
  spec: { hostNetwork },
})

const memory = (of: JsonObject): string =>
  textAt(of, 'metadata', 'annotations', previousAttributesAnnotation)

void t.test('a new node gets pool labels', async (t) => {
  const cases: [string, JsonObject, PoolLookup, Record<string, string>, RegExp?][] = [
    ['an orphan', node({ a: 'b' }), undefined, { a: 'b' }],
    [
      'in a pool that does not exist',
      node({ [nodepool]: 'p' }),
      undefined,
      { [nodepool]: 'p' },
      /no NodePool p/,
    ],
    [
      'the kubelet’s label stays if no pool can be read',
      node({ [nodepool]: 'p', [hostnetwork]: 'true' }),
      'unknown',
      { [nodepool]: 'p', [hostnetwork]: 'true' },
      /could not be read now/,
    ],
    ['in a standard pool', node({ [nodepool]: 'p' }), pool(false), { [nodepool]: 'p' }],
    [
      'in a host-network pool',
      node({ [nodepool]: 'p' }),
      pool(true),
      { [nodepool]: 'p', [hostnetwork]: 'true' },
    ],
    [
      'with the label it joined with',
      node({ [nodepool]: 'p', [hostnetwork]: 'true' }),
      pool(true),
      { [nodepool]: 'p', [hostnetwork]: 'true' },
    ],
    [
      'with a label its pool knows nothing of',
      node({ [nodepool]: 'p', [hostnetwork]: 'true' }),
      pool(false),
      { [nodepool]: 'p' },
    ],
    [
      'with that label and no pool',
      node({ [hostnetwork]: 'true' }),
      undefined,
      {},
      /in no NodePool/,
    ],
    [
      'with a wish',
      node({ [desired]: 'p' }),
      pool(true),
      { [desired]: 'p', [nodepool]: 'p', [hostnetwork]: 'true' },
    ],
    [
      'with a wish and a pool',
      node({ [desired]: 'q', [nodepool]: 'p' }),
      pool(false),
      { [desired]: 'q', [nodepool]: 'p' },
    ],
    ['without any label', node(), undefined, {}],
  ]
  for (const [what, before, found, labels, warning] of cases) {
    const { object, warnings } = mutateNewNode(before, found)
    t.strictSame(objectAt(object, 'metadata', 'labels'), labels, what)
    if (warning) t.match(warnings.join(), warning, what)
    else t.strictSame(warnings, [], what)
    t.strictSame(mutateNewNode(object, found).object, object, `${what}: applied again`)
  }
  t.equal(poolOfNewNode(node({ [desired]: 'q', [nodepool]: 'p' })), 'p')
})

void t.test('a node’s annotation records the kind of its first pool', async (t) => {
  t.equal(
    memory(mutateNewNode(node({ [nodepool]: 'p' }), pool(true)).object),
    '{"nodePool":"p","hostNetwork":true,"labelled":true}',
  )
  const restored = node({ [nodepool]: 'p' }, '{"labels":{"a":"b"},"hostNetwork":true}')
  t.equal(
    memory(mutateNewNode(restored, pool(false)).object),
    '{"nodePool":"p","hostNetwork":false}',
    'a new node has no past',
  )
  const taken = mutateNodeUpdate(
    node({ [nodepool]: 'p' }, '{"labels":{"a":"b"}}'),
    node({}, '{"labels":{"a":"b"}}'),
    pool(true),
  )
  t.equal(memory(taken.object), '{"labels":{"a":"b"},"nodePool":"p","hostNetwork":true}')
  const put = mutateNodeUpdate(node(), node({ [nodepool]: 'p' }), pool(false))
  t.equal(memory(put.object), '{"nodePool":"p","hostNetwork":false}')
  const known = node({}, '{"hostNetwork":true}')
  const again = mutateNodeUpdate(
    known,
    node({ [nodepool]: 'p' }, '{"hostNetwork":true}'),
    pool(false),
  )
  t.equal(memory(again.object), '{"hostNetwork":true}', 'the first pool decides')
  const standard = '{"hostNetwork":false}'
  const other = mutateNodeUpdate(
    node({}, standard),
    node({ [nodepool]: 'p' }, standard),
    pool(true),
  )
  t.equal(memory(other.object), standard, 'also where it had no host network')
})

void t.test('a later desired-nodepool label sets the pool once', async (t) => {
  const wished = mutateNodeUpdate(node(), node({ [desired]: 'p' }), pool(false))
  t.equal(valueAt(wished.object, 'metadata', 'labels', nodepool), 'p')
  t.equal(poolOfUpdate(node({ [desired]: 'p' }), node({ [desired]: 'p' })), '')
  const out = mutateNodeUpdate(
    node({ [desired]: 'p', [nodepool]: 'p' }),
    node({ [desired]: 'p' }),
    pool(false),
  )
  t.equal(
    valueAt(out.object, 'metadata', 'labels', nodepool),
    undefined,
    'who leaves is not taken back',
  )
  t.match(mutateNodeUpdate(node(), node({ [nodepool]: 'p' }), undefined).warnings, [
    /no NodePool p/,
  ])
  t.match(mutateNodeUpdate(node(), node({ [nodepool]: 'p' }), 'unknown').warnings, [
    /could not be read/,
  ])
  const unrelated = node({ [nodepool]: 'p', a: 'b' })
  t.equal(mutateNodeUpdate(node({ [nodepool]: 'p' }), unrelated, undefined).object, unrelated)
})

const actors = {
  controllers: new Set(['system:serviceaccount:nodehub-system:nodehub-cluster']),
  converters: new Set(['system:serviceaccount:kube-system:converter']),
}

void t.test('changes against a node’s pool or kind are refused', async (t) => {
  const [controller = ''] = actors.controllers
  const [converter = ''] = actors.converters
  const cases: [string, JsonObject, JsonObject, { user?: string; pool?: PoolLookup }, RegExp?][] = [
    [
      'into another pool',
      node({ [nodepool]: 'a' }),
      node({ [nodepool]: 'b' }),
      {},
      /is in NodePool a: take this label off/,
    ],
    ['out of its pool', node({ [nodepool]: 'a' }), node(), {}],
    [
      'its hostnetwork label',
      node({ [nodepool]: 'a', [hostnetwork]: 'true' }),
      node({ [nodepool]: 'a', [hostnetwork]: 'false' }),
      {},
      /only the controller/,
    ],
    ['that label taken off', node({ [hostnetwork]: 'true' }), node(), {}, /only the controller/],
    ['that label put on', node(), node({ [hostnetwork]: 'true' }), {}, /only the controller/],
    [
      'that label put on by the kubelet',
      node(),
      node({ [hostnetwork]: 'true' }),
      { user: 'system:node:edge-1' },
      /only the controller/,
    ],
    [
      'that label put on by the controller',
      node(),
      node({ [hostnetwork]: 'true' }),
      { user: controller },
    ],
    [
      'an edge worker by another user',
      node(),
      node({ [edgeWorker]: 'true' }),
      { user: 'system:serviceaccount:default:random' },
      /only nodes themselves/,
    ],
    [
      'an edge worker by its converter',
      node(),
      node({ [edgeWorker]: 'true' }),
      { user: converter },
    ],
    [
      'an edge worker by itself',
      node(),
      node({ [edgeWorker]: 'true' }),
      { user: 'system:node:edge-1' },
    ],
    [
      'in nothing that matters',
      node({ [nodepool]: 'a', [hostnetwork]: 'true' }),
      node({ [nodepool]: 'a', [hostnetwork]: 'true', x: 'y' }),
      {},
    ],
    ['into its first pool', node(), node({ [nodepool]: 'a' }), { pool: pool(true) }],
    [
      'into a pool that does not exist',
      node({}, '{"hostNetwork":true}'),
      node({ [nodepool]: 'a' }, '{"hostNetwork":true}'),
      {},
    ],
    [
      'into a pool that cannot be read',
      node({}, '{"hostNetwork":true}'),
      node({ [nodepool]: 'a' }, '{"hostNetwork":true}'),
      { pool: 'unknown' },
    ],
    [
      'from a standard pool to one with a host network',
      node({}, '{"hostNetwork":false}'),
      node({ [nodepool]: 'b' }, '{"hostNetwork":false}'),
      { pool: pool(true) },
      /was in a standard pool and b is a host-network pool: delete the Node and join again/,
    ],
    [
      'the other way',
      node({}, '{"hostNetwork":true}'),
      node({ [nodepool]: 'b' }, '{"hostNetwork":true}'),
      { pool: pool(false) },
      /was in a host-network pool and b is a standard pool/,
    ],
    [
      'the other way, by the label that stayed',
      node({ [hostnetwork]: 'true' }),
      node({ [nodepool]: 'b', [hostnetwork]: 'true' }),
      { pool: pool(false) },
      /was in a host-network pool/,
    ],
    [
      'into another pool of its kind',
      node({}, '{"hostNetwork":true}'),
      node({ [nodepool]: 'b' }, '{"hostNetwork":true}'),
      { pool: pool(true) },
    ],
    ['by making it forget', node({}, '{"hostNetwork":false}'), node({}), {}, /stays remembered/],
    [
      'by telling it otherwise',
      node({}, '{"hostNetwork":false}'),
      node({}, '{"hostNetwork":true}'),
      {},
      /stays remembered/,
    ],
    [
      'by the controller, which remembers more',
      node({}, '{"hostNetwork":false}'),
      node({}, '{"hostNetwork":false,"labels":{"a":"b"}}'),
      {},
    ],
  ]
  for (const [what, old, changed, { user = 'admin', pool }, said] of cases) {
    const { refusal } = validateNodeUpdate(old, changed, { user, actors, pool })
    t.equal(refusal?.code, said && 422, what)
    if (said) t.match(refusal?.message, said, what)
  }
})

void t.test('malformed nodes pass unchanged', async (t) => {
  for (const odd of [{}, { metadata: null }, { metadata: { labels: [], annotations: 1 } }]) {
    t.equal(mutateNewNode(odd, undefined).object, odd)
    t.equal(mutateNodeUpdate(odd, odd, undefined).object, odd)
    t.equal(validateNodeUpdate(odd, odd, { user: '', actors, pool: undefined }).refusal, undefined)
  }
})
