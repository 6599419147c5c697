import t from 'tap'
import { keptOffHostNetwork } from '../../../src/cluster/admission/pod.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt } from '../../../src/api/kube/json-at.ts'
import { roundOf, type Random } from '../../fuzz/random.ts'
import { selects, type SelectableNode } from '../../kit/node-selector.ts'

const hostnetwork = 'nodepool.openyurt.io/hostnetwork'
const off = { key: hostnetwork, operator: 'NotIn', values: ['true'] }
const zone = { key: 'zone', operator: 'In', values: ['a'] }
const byName = { key: 'metadata.name', operator: 'In', values: ['edge-1'] }

const path = ['spec', 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution']

const pod = (affinity?: Json): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a' },
  spec: { containers: [], ...(affinity !== undefined && { affinity }) },
})

const withTerms = (...terms: Json[]): JsonObject =>
  pod({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  })

void t.test('affinity of other kinds stays beside the condition', async (t) => {
  const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'x' }] }
  const preferred = [{ weight: 1, preference: { matchExpressions: [zone] } }]
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: preferred }
  for (const affinity of [null, { podAffinity }, { nodeAffinity }, { podAffinity, nodeAffinity }]) {
    const after = keptOffHostNetwork(pod(affinity))
    t.strictSame(valueAt(after, ...path, 'nodeSelectorTerms'), [{ matchExpressions: [off] }])
    t.match(valueAt(after, 'spec', 'affinity'), affinity ?? {}, 'all of it is kept')
  }
})

void t.test('patched affinity matches the same nodes, but for host-network ones', async (t) => {
  for (let round = 0; round < 3_000; round += 1) {
    const random = roundOf(42, round)
    const before = randomPod(random)
    const after = keptOffHostNetwork(before)
    if (JSON.stringify(keptOffHostNetwork(after)) !== JSON.stringify(after))
      t.strictSame(keptOffHostNetwork(after), after, `round ${round}: applied twice equals once`)
    const was = valueAt(before, ...path)
    for (const node of everyNode) {
      const allowed = was === undefined ? true : selects(was, node)
      const expected = allowed && node.labels[hostnetwork] !== 'true'
      if (selects(valueAt(after, ...path), node) !== expected)
        t.fail(`round ${round}: ${JSON.stringify({ was, node, expected })}`)
    }
  }
  t.pass('3000 rounds')
})

const everyNode: readonly SelectableNode[] = ['edge-1', 'edge-2'].flatMap((name) =>
  ['a', 'b', '3', undefined].flatMap((zone) =>
    ['true', 'false', undefined].map((hostNetwork) => ({
      name,
      labels: {
        ...(zone !== undefined && { zone }),
        ...(hostNetwork !== undefined && { [hostnetwork]: hostNetwork }),
      },
    })),
  ),
)

function randomPod(random: Random): JsonObject {
  if (random.once(10)) return pod()
  return withTerms(...Array.from({ length: random.below(4) }, () => randomTerm(random)))
}

function randomTerm(random: Random): JsonObject {
  const expressions = Array.from({ length: random.below(3) }, () => randomExpression(random))
  const fields = Array.from({ length: random.below(2) }, () => ({
    ...byName,
    operator: random.of(['In', 'NotIn']),
  }))
  return {
    ...((expressions.length > 0 || random.once(2)) && { matchExpressions: expressions }),
    ...((fields.length > 0 || random.once(3)) && { matchFields: fields }),
  }
}

function randomExpression(random: Random): Json {
  const key = random.of(['zone', hostnetwork])
  const operator = random.of(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'])
  if (operator === 'Exists' || operator === 'DoesNotExist') return { key, operator }
  if (operator === 'Gt' || operator === 'Lt') return { key, operator, values: ['2'] }
  const values = ['a', 'b', 'true'].filter(() => random.once(2))
  return { key, operator, values: values.length === 0 ? ['true'] : values }
}

void t.test('pods with malformed affinity are left unchanged', async (t) => {
  for (const odd of [
    withTerms(1, null, 'x', []),
    pod({ nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } }),
  ])
    t.strictSame(keptOffHostNetwork(odd), odd)
})
