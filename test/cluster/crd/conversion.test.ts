import t from 'tap'
import { carriedAnnotation, convertedPool } from '../../../src/cluster/crd/conversion.ts'
import {
  fieldsOf,
  poolVersions,
  type PoolVersion,
} from '../../../src/cluster/crd/node-pool-schema.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt, objectAt, withAt } from '../../../src/api/kube/json-at.ts'
import { Random, roundOf } from '../../fuzz/random.ts'
import { randomPool, randomValue } from './random-pool.ts'

const rounds = 1_500
const seed = 20_261_121

const through = (pool: JsonObject, ...versions: readonly PoolVersion[]): JsonObject =>
  versions.reduce(convertedPool, pool)

const pool = (version: PoolVersion, spec: JsonObject, rest: JsonObject = {}): JsonObject => ({
  apiVersion: `apps.openyurt.io/${version}`,
  kind: 'NodePool',
  metadata: { name: 'hangzhou' },
  spec,
  ...rest,
})

void t.test('a pool keeps its fields through any conversions', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const random = roundOf(seed, round)
    const start = random.of(poolVersions)
    const before = randomPool(random, start)
    const chain = Array.from({ length: 1 + random.below(5) }, () => random.of(poolVersions))
    const stored = through(before, 'v1beta2')
    const after = through(before, ...chain, 'v1beta2')
    // Only what differs is a test's result: thousands that do not would hide it.
    if (JSON.stringify(sorted(after)) !== JSON.stringify(sorted(stored)))
      t.strictSame(after, stored, `round ${round}: ${start}, ${chain.join(', ')}`)
    if (start === 'v1beta2') {
      const same = JSON.stringify(sorted(after)) === JSON.stringify(sorted(before))
      if (!same) t.strictSame(after, before, `round ${round}`)
    }
  }
  t.pass(`${rounds} rounds`)
})

void t.test('in each version a pool has the fields of that version and no other', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const random = roundOf(seed + 1, round)
    const to = random.of(poolVersions)
    const shown = through(randomPool(random, random.of(poolVersions)), to)
    for (const section of ['spec', 'status'] as const)
      for (const name of Object.keys(objectAt(shown, section)))
        if (!Object.hasOwn(fieldsOf[to][section], name))
          t.fail(`round ${round}: ${to} has ${section}.${name}`)
  }
  t.pass(`${rounds} rounds`)
})

void t.test('a field written through an older version changes no other', async (t) => {
  for (let round = 0; round < rounds; round += 1) {
    const random = roundOf(seed + 2, round)
    const version = random.of(['v1alpha1', 'v1beta1'] as const)
    const stored = randomPool(random, 'v1beta2')
    const shown = through(stored, version)
    const [name, schema] = random.of(Object.entries(fieldsOf[version].spec))
    const value = randomValue(random, schema)
    const written = through(withAt(shown, ['spec', name], value), 'v1beta2')
    const expected =
      name === 'selector'
        ? objectAt(through(shown, 'v1beta2'), 'spec')
        : { ...objectAt(stored, 'spec'), [name]: value }
    if (JSON.stringify(sorted(objectAt(written, 'spec'))) !== JSON.stringify(sorted(expected)))
      t.strictSame(valueAt(written, 'spec'), expected, `round ${round}: ${version} ${name}`)
    const readBack = valueAt(through(written, version), 'spec', name)
    if (JSON.stringify(sorted(readBack ?? null)) !== JSON.stringify(sorted(value)))
      t.strictSame(readBack, value, `round ${round}: ${version} ${name}`)
  }
  t.pass(`${rounds} rounds`)
})

void t.test('a field that was taken out through an older version is gone', async (t) => {
  const stored = pool('v1beta2', { type: 'Edge', labels: { a: 'b' }, leaderReplicas: 3 })
  const written = withAt(through(stored, 'v1beta1'), ['spec', 'labels'], undefined)
  t.strictSame(valueAt(through(written, 'v1beta2'), 'spec'), { type: 'Edge', leaderReplicas: 3 })
})

void t.test('a host network survives each version', async (t) => {
  const wanted = { type: 'Edge', hostNetwork: true }
  t.strictSame(valueAt(through(pool('v1beta1', wanted), 'v1beta2'), 'spec'), wanted)
  t.strictSame(valueAt(through(pool('v1beta2', wanted), 'v1beta1'), 'spec'), wanted)
  const oldest = through(pool('v1beta2', wanted), 'v1alpha1')
  t.equal(valueAt(oldest, 'metadata', 'annotations', 'nodepool.openyurt.io/hostnetwork'), 'true')
  t.strictSame(through(oldest, 'v1beta2'), pool('v1beta2', wanted))
  for (const version of ['v1alpha1', 'v1beta1'] as const) {
    const annotations = { 'nodepool.openyurt.io/hostnetwork': 'True' }
    const created = { ...pool(version, {}), metadata: { name: 'a', annotations } }
    t.equal(
      valueAt(through(created, 'v1beta2'), 'spec', 'hostNetwork'),
      true,
      `${version}, said the old way`,
    )
  }
})

void t.test('the annotation counts in v1alpha1 alone once a pool has the field', async (t) => {
  const stored = pool('v1beta2', { hostNetwork: true, leaderReplicas: 1 })
  const annotation = ['metadata', 'annotations', 'nodepool.openyurt.io/hostnetwork']
  const oldest = withAt(through(stored, 'v1alpha1'), annotation, undefined)
  t.equal(
    valueAt(through(oldest, 'v1beta2'), 'spec', 'hostNetwork'),
    undefined,
    'its writer took it out',
  )
  const older = withAt(through(stored, 'v1beta1'), annotation, 'false')
  t.equal(valueAt(through(older, 'v1beta2'), 'spec', 'hostNetwork'), true)
  const stray = withAt(pool('v1beta2', { type: 'Edge' }), annotation, 'true')
  t.equal(valueAt(through(stray, 'v1beta1'), 'spec', 'hostNetwork'), undefined)
  t.strictSame(through(stray, 'v1beta1', 'v1beta2'), pool('v1beta2', { type: 'Edge' }), 'it goes')
})

void t.test('a pool without a status takes none from the annotation', async (t) => {
  const stored = pool('v1beta2', {}, { status: { leaderNum: 3 } })
  const exported = withAt(through(stored, 'v1beta1'), ['status'], undefined)
  t.equal(valueAt(through(exported, 'v1beta2'), 'status'), undefined)
})

void t.test('an annotation that cannot be understood changes nothing', async (t) => {
  const cases: Json[] = [
    '{',
    '[]',
    '1',
    JSON.stringify({ spec: { leaderReplicas: 'three', interConnectivity: 1, nodes: [] } }),
    JSON.stringify({
      spec: { leaderElectionStrategy: 'dice', poolScopeMetadata: [{ group: '' }] },
    }),
    JSON.stringify({ spec: { type: 'Cloud', hostNetwork: true, invented: 1 }, status: [] }),
    JSON.stringify({ spec: { leaderReplicas: 2 ** 40, leaderNodeLabelSelector: { a: 1 } } }),
  ]
  for (const text of cases) {
    const odd = pool(
      'v1beta1',
      { type: 'Edge' },
      { metadata: { annotations: { [carriedAnnotation]: text } } },
    )
    t.strictSame(valueAt(through(odd, 'v1beta2'), 'spec'), { type: 'Edge' }, JSON.stringify(text))
  }
  const late = JSON.stringify({ status: { leaderLastElectedTime: 'soon' } })
  const metadata = { annotations: { [carriedAnnotation]: late } }
  const odd = pool('v1beta1', {}, { metadata, status: {} })
  t.strictSame(valueAt(through(odd, 'v1beta2'), 'status'), {})
})

void t.test('objects that are no pools throw', async (t) => {
  const random = new Random(seed)
  const right = randomPool(random, 'v1beta1')
  t.throws(() => through({ ...right, kind: 'Pod' }, 'v1beta2'), /Pod is no version of NodePool/)
  t.throws(() => through({ ...right, apiVersion: 'apps.openyurt.io/v2' }, 'v1beta2'), /v2 NodePool/)
  t.throws(() => through({}, 'v1beta2'), /no version of NodePool/)
})

/** The order of members says nothing. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value as JsonObject).map(
    ([name, member]) => [name, sorted(member)] as const,
  )
  return Object.fromEntries(members.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
