import t from 'tap'
import {
  nodesFinalizer,
  reconcileNode,
  reconcilePool,
  type NodeWrite,
} from '../../../src/cluster/controller/reconcile.ts'
import { identityOf } from '../../../src/cluster/controller/attributes.ts'
import {
  previousAttributesAnnotation as memory,
  readPrevious,
} from '../../../src/cluster/previous-attributes.ts'
import {
  hostNetworkLabel,
  nodePoolLabel,
  type NodePool,
  type PoolTaint,
} from '../../../src/api/kube/node-pool.ts'
import type { NodeFacts } from '../../../src/cluster/controller/node-facts.ts'
import { roundOf, type Random } from '../../fuzz/random.ts'

const pool = (
  name: string,
  spec: NodePool['spec'] = {},
  rest: Partial<NodePool> = {},
): NodePool => ({
  apiVersion: 'apps.openyurt.io/v1beta2',
  kind: 'NodePool',
  metadata: { name },
  spec: { type: 'Edge', ...spec },
  ...rest,
})

const node = (labels: Record<string, string> = {}, rest: Partial<NodeFacts> = {}): NodeFacts => ({
  name: 'edge-1',
  uid: 'u-1',
  resourceVersion: '7',
  labels,
  annotations: {},
  taints: [],
  addresses: [],
  ready: true,
  ...rest,
})

const inPool = (name: string, rest: Partial<NodeFacts> = {}): NodeFacts =>
  node({ [nodePoolLabel]: name }, rest)

/** The node as the API server would have it after the write. */
function written(before: NodeFacts, write: NodeWrite | undefined): NodeFacts {
  const patched = (
    texts: Readonly<Record<string, string>>,
    patch: Readonly<Record<string, string | null>> = {},
  ): Record<string, string> =>
    Object.fromEntries(
      Object.entries({ ...texts, ...patch }).filter(
        (entry): entry is [string, string] => entry[1] !== null,
      ),
    )
  return {
    ...before,
    labels: patched(before.labels, write?.metadata.labels),
    annotations: patched(before.annotations, write?.metadata.annotations),
    taints: write?.spec?.taints ?? before.taints,
  }
}

void t.test('labels, annotations and taints of the pool reach the node in one write', async (t) => {
  const spec = {
    labels: { zone: 'a', [nodePoolLabel]: 'another', [hostNetworkLabel]: 'true' },
    annotations: { note: 'n' },
    taints: [{ key: 'edge', value: 'yes', effect: 'NoSchedule' }],
  }
  const { write, awaits } = reconcileNode(inPool('p'), pool('p', spec), undefined)
  t.equal(awaits, undefined, 'a standard pool needs no pods')
  t.strictSame(write, {
    metadata: {
      labels: { zone: 'a' },
      annotations: {
        note: 'n',
        [memory]: JSON.stringify({
          labels: { zone: 'a' },
          annotations: { note: 'n' },
          taints: [{ key: 'edge', value: 'yes', effect: 'NoSchedule' }],
          nodePool: 'p',
          hostNetwork: false,
        }),
      },
    },
    spec: { taints: [{ key: 'edge', value: 'yes', effect: 'NoSchedule' }] },
  })
  const after = written(inPool('p'), write)
  t.equal(reconcileNode(after, pool('p', spec), undefined).write, undefined, 'and nothing is left')
})

void t.test(
  'a pool label that was taken off comes back; one that was changed is the user’s',
  async (t) => {
    const p = pool('p', { labels: { zone: 'a', tier: '1' } })
    const settled = written(inPool('p'), reconcileNode(inPool('p'), p, []).write)
    const touched = { ...settled, labels: { [nodePoolLabel]: 'p', tier: 'mine' } }
    const after = written(touched, reconcileNode(touched, p, []).write)
    t.strictSame(after.labels, { [nodePoolLabel]: 'p', zone: 'a', tier: 'mine' })
    t.strictSame(readPrevious(after.annotations[memory]).labels, { zone: 'a' })
  },
)

void t.test('attributes in yurt-manager’s memory are a pool’s', async (t) => {
  const before = node(
    { [nodePoolLabel]: 'p', zone: 'a', own: 'o' },
    {
      annotations: {
        [memory]: '{"labels":{"zone":"a"},"taints":[{"key":"k","effect":"NoSchedule"}]}',
      },
      taints: [{ key: 'k', effect: 'NoSchedule' }],
    },
  )
  const after = written(before, reconcileNode(before, pool('p'), []).write)
  t.strictSame([after.labels, after.taints], [{ [nodePoolLabel]: 'p', own: 'o' }, []])
})

void t.test('an unreadable memory removes nothing', async (t) => {
  for (const broken of ['{', '[]', '{"labels":7,"taints":[1,{}]}', 'null']) {
    const before = node({ [nodePoolLabel]: 'p', zone: 'a' }, { annotations: { [memory]: broken } })
    const after = written(before, reconcileNode(before, pool('p'), []).write)
    t.strictSame(after.labels, before.labels, broken)
  }
})

const hostPool = pool('h', { hostNetwork: true })

void t.test('the hostnetwork label is put on where no pod on the pod network runs', async (t) => {
  t.equal(reconcileNode(inPool('h'), hostPool, undefined).awaits, 'pods', 'it needs the pods')
  t.equal(
    reconcileNode(inPool('h'), hostPool, undefined).write,
    undefined,
    'before anything is written',
  )
  const free = reconcileNode(inPool('h'), hostPool, [])
  t.equal(free.write?.metadata.labels?.[hostNetworkLabel], 'true')
  const taken = reconcileNode(inPool('h'), hostPool, ['a/1', 'a/2', 'a/3', 'a/4'])
  t.equal(taken.write?.metadata.labels, undefined)
  t.match(taken.events, [
    { type: 'Warning', reason: 'HostNetworkLabelWithheld', message: /a\/1, a\/2, a\/3 and 1 more/ },
  ])
  t.strictSame(taken.withheldFor, ['a/1', 'a/2', 'a/3', 'a/4'])
})

void t.test('a node registered with the label is recorded so', async (t) => {
  const came = node({ [nodePoolLabel]: 'h', [hostNetworkLabel]: 'true' })
  const after = written(came, reconcileNode(came, hostPool, undefined).write)
  const bare = { ...after, labels: { [nodePoolLabel]: 'h' } }
  t.match(reconcileNode(bare, hostPool, ['a/1']).events, [{ reason: 'HostNetworkLabelRestored' }])
})

void t.test('a node of a standard pool does not carry the label', async (t) => {
  const came = node({ [nodePoolLabel]: 'p', [hostNetworkLabel]: 'true' })
  const { write, events } = reconcileNode(came, pool('p'), undefined)
  t.strictSame(write?.metadata.labels, { [hostNetworkLabel]: null })
  t.match(events, [{ reason: 'HostNetworkLabelRemoved' }])
})

void t.test('a node that left its pool loses its attributes, and keeps its kind', async (t) => {
  const p = pool('h', { hostNetwork: true, labels: { zone: 'a' } })
  const settled = written(inPool('h'), reconcileNode(inPool('h'), p, []).write)
  const { [nodePoolLabel]: _, ...labels } = settled.labels
  const left = { ...settled, labels }
  const after = written(left, reconcileNode(left, undefined, undefined).write)
  t.strictSame(after.labels, { [hostNetworkLabel]: 'true' })
  t.equal(reconcileNode(after, undefined, undefined).write, undefined)
  const moved = { ...after, labels: { ...after.labels, [nodePoolLabel]: 'p' } }
  const { write, events } = reconcileNode(moved, pool('p', { labels: { zone: 'b' } }), [])
  t.equal(write, undefined, 'it is left as it is in a pool of the other kind')
  t.match(events, [
    { type: 'Warning', reason: 'NodePoolMoveRefused', message: /Delete the Node object/ },
  ])
  const same = { ...after, labels: { ...after.labels, [nodePoolLabel]: 'h2' } }
  t.match(reconcileNode(same, pool('h2', { hostNetwork: true }), []).events, [
    { type: 'Normal', reason: 'NodePoolChanged', message: /changed from h to h2/ },
  ])
})

void t.test('a node without a pool, or of a pool that is not there, is left alone', async (t) => {
  const nothing = { events: [], withheldFor: [] }
  t.strictSame(reconcileNode(node({ [hostNetworkLabel]: 'true' }), undefined, undefined), nothing)
  t.strictSame(reconcileNode(inPool('gone'), undefined, undefined), nothing)
})

void t.test('status counts nodes, and the finalizer stands while there are any', async (t) => {
  const nodes = [node({}, { name: 'b' }), node({}, { name: 'a', ready: false })]
  const status = { readyNodeNum: 1, unreadyNodeNum: 1, nodes: ['a', 'b'] }
  t.strictSame(reconcilePool(pool('p'), nodes), {
    write: { metadata: { finalizers: [nodesFinalizer] } },
    status,
  })
  const metadata = { name: 'p', finalizers: ['other/one', nodesFinalizer] }
  t.strictSame(reconcilePool(pool('p', {}, { metadata, status }), nodes), {})
  t.strictSame(reconcilePool(pool('p', {}, { metadata, status }), []), {
    write: { metadata: { finalizers: ['other/one'] } },
    status: { readyNodeNum: 0, unreadyNodeNum: 0, nodes: [] },
  })
  const going = { name: 'p', deletionTimestamp: '2026-11-21T00:00:00Z' }
  t.equal(reconcilePool(pool('p', {}, { metadata: going }), nodes).write, undefined)
})

const keys = ['a', 'b', 'c', 'constructor', 'toString']
const values = ['1', '2']
const effects = ['NoSchedule', 'NoExecute']

const texts = (random: Random): Record<string, string> =>
  Object.fromEntries(keys.filter(() => random.once(2)).map((key) => [key, random.of(values)]))

const taints = (random: Random): PoolTaint[] =>
  keys
    .filter(() => random.once(2))
    .map((key) => ({ key, value: random.of(values), effect: random.of(effects) }))

void t.test('after any sequence of pools a user’s attributes stay and all others go', async (t) => {
  for (let round = 0; round < 200; round++) {
    const random = roundOf(20_261_121, round)
    const users = {
      labels: Object.fromEntries(Object.entries(texts(random)).map(([key, v]) => [key, `u${v}`])),
      annotations: texts(random),
      taints: taints(random).map((each) => ({ ...each, value: 'u' })),
    }
    let now = node({ ...users.labels, [nodePoolLabel]: 'p' }, users)
    now = { ...now, labels: { ...now.labels, [nodePoolLabel]: 'p' } }
    for (let step = 0; step < 6; step++) {
      const spec = { labels: texts(random), annotations: texts(random), taints: taints(random) }
      const last = step === 5
      const p = last ? pool('p') : pool('p', spec)
      const once = reconcileNode(now, p, [])
      now = written(now, once.write)
      const again = reconcileNode(now, p, [])
      if (again.write !== undefined) t.fail(`round ${round}: twice is not once`)
      if (last) break
      for (const [key, value] of Object.entries(spec.labels))
        if (!Object.hasOwn(users.labels, key) && now.labels[key] !== value)
          t.fail(`round ${round}: ${key} has not arrived`)
    }
    const { [nodePoolLabel]: _pool, ...labels } = now.labels
    const { [memory]: _memory, ...annotations } = now.annotations
    t.strictSame(
      {
        labels: new Map(Object.entries(labels)),
        annotations: new Map(Object.entries(annotations)),
        taints: new Set(now.taints.map(identityOf)),
      },
      {
        labels: new Map(Object.entries(users.labels)),
        annotations: new Map(Object.entries(users.annotations)),
        taints: new Set(users.taints.map(identityOf)),
      },
      `round ${round}`,
    )
  }
})
