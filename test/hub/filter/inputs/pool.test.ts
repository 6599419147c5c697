import t from 'tap'
import type { NodeFacts, PoolFacts } from '../../../../src/hub/filter/inputs.ts'
import {
  nodesOfBucket,
  poolFactsOf,
  poolNameOf,
  parseNodePool,
  type PoolObservations,
  type ParsedNodePool,
} from '../../../../src/hub/filter/inputs/pool.ts'
import { nodePools } from '../../../../src/api/kube/node-pool.ts'

const bytes = (object: unknown): Buffer => Buffer.from(JSON.stringify(object))

const node = (labels: Record<string, string> = {}): NodeFacts => ({
  name: 'edge-1',
  labels,
  annotations: {},
})

const inPool = { 'apps.openyurt.io/nodepool': 'hangzhou' }
const onHostNetwork = { 'nodepool.openyurt.io/hostnetwork': 'true' }

const read = (changes: Partial<ParsedNodePool> = {}): ParsedNodePool => ({
  type: 'Edge',
  hostNetwork: false,
  labels: {},
  annotations: {},
  nodes: [],
  ...changes,
})

const known = (changes: Partial<PoolObservations>): PoolObservations => ({
  configuredName: undefined,
  node: undefined,
  nodePool: undefined,
  readsNodePools: true,
  isAbsent: false,
  lastFacts: undefined,
  ...changes,
})

const hostNetworkOf = (changes: Partial<PoolObservations>): unknown =>
  poolFactsOf(known(changes))?.hostNetwork

void t.test(
  'a NodePool is read in every version, and in none is the host’s network lost',
  async (t) => {
    const pool = {
      metadata: { name: 'p', labels: { a: 'b' }, annotations: { c: 'd' } },
      spec: { type: 'Edge', hostNetwork: true },
      status: { nodes: ['b', 'a', 'a'], readyNodeNum: 2 },
    }
    t.strictSame(parseNodePool(nodePools, bytes(pool)), {
      type: 'Edge',
      hostNetwork: true,
      labels: { a: 'b' },
      annotations: { c: 'd' },
      nodes: ['a', 'b'],
    })
    const noted = { metadata: { annotations: { 'nodepool.openyurt.io/hostnetwork': 'True' } } }
    for (const version of ['v1beta1', 'v1alpha1']) {
      t.equal(parseNodePool({ ...nodePools, version }, bytes(noted)).hostNetwork, true, version)
    }
    t.equal(
      parseNodePool(nodePools, bytes(noted)).hostNetwork,
      false,
      'the field counts where it is',
    )
  },
)

void t.test('a malformed NodePool or NodeBucket has no nodes', async (t) => {
  for (const odd of [
    {},
    [],
    null,
    'text',
    { spec: 1, status: [] },
    { status: { nodes: 7, readyNodeNum: 0, unreadyNodeNum: 0 } },
  ]) {
    t.strictSame(
      parseNodePool(nodePools, bytes(odd)),
      read({ type: '', nodes: undefined }),
      JSON.stringify(odd),
    )
    t.strictSame(nodesOfBucket(bytes(odd)), [])
  }
  const nameless = { status: { nodes: [1, '', {}] } }
  t.strictSame(parseNodePool(nodePools, bytes(nameless)), read({ type: '', nodes: [] }))
  t.strictSame(nodesOfBucket(bytes({ nodes: [{ name: 'a' }, {}, 7, { name: 'b' }] })), ['a', 'b'])
})

void t.test('the pool is the one the operator names, else that of the node’s label', async (t) => {
  t.equal(poolNameOf(known({})), undefined)
  t.equal(poolNameOf(known({ node: node() })), null)
  t.equal(poolNameOf(known({ node: node({ 'apps.openyurt.io/nodepool': '' }) })), null)
  t.equal(poolNameOf(known({ node: node({ 'apps.openyurt.io/desired-nodepool': 'x' }) })), null)
  t.equal(poolNameOf(known({ node: node(inPool) })), 'hangzhou')
  t.equal(poolNameOf(known({ node: node(inPool), configuredName: 'beijing' })), 'beijing')
})

void t.test('the host network follows the label or the NodePool, as last known', async (t) => {
  const labelled = node({ ...inPool, ...onHostNetwork })
  const plain = node(inPool)
  t.equal(hostNetworkOf({ node: labelled }), true)
  t.equal(hostNetworkOf({ node: labelled, nodePool: read() }), true)
  t.equal(hostNetworkOf({ node: plain, nodePool: read({ hostNetwork: true }) }), true)
  t.equal(hostNetworkOf({ node: plain, nodePool: read() }), false)
  t.equal(hostNetworkOf({ node: plain }), undefined, 'it is not known yet')
  t.equal(hostNetworkOf({ node: plain, readsNodePools: false }), false, 'NodePools are not read')
  const last = poolFactsOf(known({ node: labelled }))
  t.equal(hostNetworkOf({ node: plain, lastFacts: last }), true)
  const unread = hostNetworkOf({ node: plain, lastFacts: last, readsNodePools: false })
  t.equal(unread, false, 'where the label alone counts, it is known to be gone')
  const moved = node({ 'apps.openyurt.io/nodepool': 'beijing' })
  t.equal(
    hostNetworkOf({ node: moved, lastFacts: last }),
    undefined,
    'of another pool it says nothing',
  )
  t.equal(hostNetworkOf({ node: plain, isAbsent: true }), false, 'there is no such pool')
  t.equal(hostNetworkOf({ node: labelled, isAbsent: true }), true, 'the label counts by itself')
  t.equal(
    hostNetworkOf({ node: plain, isAbsent: true, lastFacts: last }),
    true,
    'a deleted pool keeps it',
  )
  t.equal(
    hostNetworkOf({ configuredName: 'x', isAbsent: true }),
    undefined,
    'the label is not read yet',
  )
})

void t.test('without inputs the last known facts count', async (t) => {
  const last: PoolFacts = {
    name: 'hangzhou',
    type: 'Edge',
    hostNetwork: false,
    labels: { a: 'b' },
    annotations: {},
  }
  t.strictSame(poolFactsOf(known({ lastFacts: last })), last)
  t.strictSame(poolFactsOf(known({ lastFacts: null })), null)
  t.strictSame(poolFactsOf(known({ lastFacts: last, node: node(inPool) })), last)
  t.equal(poolFactsOf(known({ lastFacts: last, node: node() })), null)
  t.equal(poolFactsOf(known({})), undefined)
})
