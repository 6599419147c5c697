import t from 'tap'
import type { NodeFacts } from '../../../../src/hub/filter/inputs.ts'
import {
  nodesOfBucket,
  poolFactsOf,
  poolNameOf,
  parseNodePool,
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

type Known = Parameters<typeof poolFactsOf>[0]

const known = (changes: Partial<Known>): Known => ({
  name: 'hangzhou',
  node: undefined,
  way: 'status',
  ...changes,
})

const hostNetworkOf = (changes: Partial<Known>): unknown => poolFactsOf(known(changes))?.hostNetwork

/** The NodePool as it was read last. */
const last = (value: ParsedNodePool | undefined, isAbsent = false) => ({
  nodePool: { value, isAbsent },
})

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
  t.equal(poolNameOf(undefined, undefined), undefined)
  t.equal(poolNameOf(undefined, node()), null)
  t.equal(poolNameOf(undefined, node({ 'apps.openyurt.io/nodepool': '' })), null)
  t.equal(poolNameOf(undefined, node({ 'apps.openyurt.io/desired-nodepool': 'x' })), null)
  t.equal(poolNameOf(undefined, node(inPool)), 'hangzhou')
  t.equal(poolNameOf('beijing', node(inPool)), 'beijing')
})

void t.test('the host network follows the label or the NodePool, as last known', async (t) => {
  const labelled = node({ ...inPool, ...onHostNetwork })
  const plain = node(inPool)
  t.equal(poolFactsOf(known({ name: null })), null)
  t.equal(hostNetworkOf({ node: labelled }), true)
  t.equal(hostNetworkOf({ node: labelled, ...last(read()) }), true)
  t.equal(hostNetworkOf({ node: plain, ...last(read({ hostNetwork: true })) }), true)
  t.equal(hostNetworkOf({ node: plain, ...last(read()) }), false)
  t.equal(hostNetworkOf({ node: plain }), undefined, 'it is not known yet')
  t.equal(hostNetworkOf({ node: plain, way: 'off' }), false, 'NodePools are not read')
  t.equal(hostNetworkOf({ node: plain, ...last(undefined, true) }), false, 'there is no such pool')
  t.equal(hostNetworkOf({ node: labelled, ...last(undefined, true) }), true, 'the label counts')
  const deleted = last(read({ hostNetwork: true }), true)
  t.equal(hostNetworkOf({ node: plain, ...deleted }), true, 'a deleted pool keeps it')
  t.equal(hostNetworkOf(last(undefined, true)), undefined, 'the label is not read yet')
})
