import t from 'tap'
import type { PoolLookup } from '../../../src/cluster/admission/lookup.ts'
import {
  mutateNodeUpdate,
  mutateNewNode,
  poolOfUpdate,
} from '../../../src/cluster/admission/node.ts'
import { previousAttributesAnnotation } from '../../../src/cluster/previous-attributes.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'

const nodepool = 'apps.openyurt.io/nodepool'
const desired = 'apps.openyurt.io/desired-nodepool'
const hostnetwork = 'nodepool.openyurt.io/hostnetwork'

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

void t.test('a new node keeps its labels if no pool can be read, with a warning', async (t) => {
  const joined = node({ [nodepool]: 'p', [hostnetwork]: 'true' })
  const unread = mutateNewNode(joined, 'unknown')
  t.strictSame(
    objectAt(unread.object, 'metadata', 'labels'),
    objectAt(joined, 'metadata', 'labels'),
  )
  t.match(unread.warnings, [/could not be read now/])
  const poolless = mutateNewNode(node({ [hostnetwork]: 'true' }), undefined)
  t.match(poolless.warnings, [/in no NodePool/])
  const known = mutateNewNode(joined, pool(true)).object
  t.strictSame(mutateNewNode(known, pool(true)).object, known, 'applied again')
})

void t.test('a node’s annotation records the kind of its first pool', async (t) => {
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
})

void t.test('a later desired-nodepool label sets the pool once', async (t) => {
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
})

void t.test('malformed nodes pass unchanged', async (t) => {
  for (const odd of [{}, { metadata: null }, { metadata: { labels: [], annotations: 1 } }]) {
    t.equal(mutateNewNode(odd, undefined).object, odd)
    t.equal(mutateNodeUpdate(odd, odd, undefined).object, odd)
  }
})
