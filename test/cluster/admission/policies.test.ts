import t from 'tap'
import { unmetConditions, pool, refusedFields, type PolicyRequest } from './evaluated-policy.ts'

const inPool = 'apps.openyurt.io/nodepool'
const wished = 'apps.openyurt.io/desired-nodepool'
const hostNetwork = 'nodepool.openyurt.io/hostnetwork'
const memory = 'nodepool.openyurt.io/previous-attributes'
const node = (labels: object, annotations?: object) => ({
  metadata: { labels, ...(annotations && { annotations }) },
})

/** A node enters the pool p. */
const enters: PolicyRequest = {
  operation: 'UPDATE',
  object: node({ [inPool]: 'p' }),
  oldObject: node({}),
}
const ourOwn = 'system:serviceaccount:nodehub-system:nodehub-cluster'

void t.test('the policy applies to updates that concern the pool of a node', async (t) => {
  t.strictSame(unmetConditions('nodes', enters), [])
  t.strictSame(unmetConditions('nodes', { ...enters, username: ourOwn }), ['is-not-our-own'])
  const status = { ...enters, oldObject: enters.object ?? {} }
  t.strictSame(unmetConditions('nodes', status), ['concerns-its-pool'])
  for (const label of [wished, hostNetwork, 'openyurt.io/is-edge-worker'])
    t.strictSame(unmetConditions('nodes', { ...enters, object: node({ [label]: 'x' }) }), [], label)
  const forgets = { ...enters, object: node({}), oldObject: node({}, { [memory]: '{}' }) }
  t.strictSame(unmetConditions('nodes', forgets), [], memory)
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
  const entered = ({ metadata }: ReturnType<typeof node>) => ({
    metadata: { ...metadata, labels: { ...metadata.labels, [inPool]: 'p' } },
  })
  const refused = (oldObject: ReturnType<typeof node>, params: object): string[] =>
    refusedFields('nodes', { ...enters, oldObject, object: entered(oldObject), params })
  const entering = (oldObject: ReturnType<typeof node>, hostNetwork: boolean): number =>
    refused(oldObject, pool('p', hostNetwork)).length
  for (const kind of [true, false]) {
    t.equal(entering(remembering(kind), kind), 0)
    t.equal(entering(remembering(kind), !kind), 1)
    t.equal(entering(node({}), kind), 0)
  }
  const labelled = node({ [hostNetwork]: 'true' })
  t.equal(entering(labelled, false), 1, 'its label says what it was')
  t.equal(entering(labelled, true), 0)
  t.strictSame(refused(remembering(false), pool('q')), [], 'it enters p, of the kind that it was')
  t.equal(
    entering(node({ [hostNetwork]: 'true' }, { [memory]: '{"hostNetwork":false}' }), false),
    0,
  )
})
