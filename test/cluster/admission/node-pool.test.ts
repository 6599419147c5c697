import t from 'tap'
import {
  defaultedPool,
  validateNewPool,
  validatePoolUpdate,
  validatePoolDeletion,
} from '../../../src/cluster/admission/node-pool.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'

const pool = (spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: 'apps.openyurt.io/v1beta2',
  kind: 'NodePool',
  metadata: { name: 'hangzhou', ...metadata },
  spec,
})

const services = { group: '', version: 'v1', resource: 'services' }
const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' }

void t.test('a new pool gets defaults for omitted fields', async (t) => {
  const cases: Readonly<Record<string, readonly [JsonObject, JsonObject]>> = {
    'the type is empty': [{ type: '' }, {}],
    'a host network and replicas': [{ hostNetwork: true, leaderReplicas: 3 }, {}],
    'no strategy': [{ type: 'Edge', leaderElectionStrategy: '' }, {}],
    'the strategy mark': [{ leaderElectionStrategy: 'mark' }, {}],
    'no replicas': [{ leaderReplicas: 0 }, { leaderReplicas: 1 }],
    'fewer replicas than none': [{ leaderReplicas: -2 }, { leaderReplicas: 1 }],
    'something else is shared': [
      { poolScopeMetadata: [leases] },
      { poolScopeMetadata: [leases, services, slices] },
    ],
    'services are shared': [
      { poolScopeMetadata: [services] },
      { poolScopeMetadata: [services, slices] },
    ],
    'both are': [
      { poolScopeMetadata: [slices, services] },
      { poolScopeMetadata: [slices, services] },
    ],
  }
  for (const [what, [spec, filled]] of Object.entries(cases)) {
    t.match(
      defaultedPool(pool(spec, { labels: { foo: 'bar' } })),
      {
        metadata: { labels: { foo: 'bar', 'nodepool.openyurt.io/type': 'edge' } },
        spec: {
          type: 'Edge',
          leaderElectionStrategy: 'random',
          leaderReplicas: 1,
          poolScopeMetadata: [services, slices],
          ...Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== '')),
          ...filled,
        },
      },
      what,
    )
  }
})

void t.test('a new pool’s status is dropped', async (t) => {
  t.notHas(defaultedPool({ ...pool({}), status: { readyNodeNum: 3 } }), { status: {} })
})

void t.test('a new pool with invalid fields is refused', async (t) => {
  const cases: Readonly<Record<string, readonly [JsonObject, RegExp?]>> = {
    normal: [{ type: 'Edge', leaderElectionStrategy: 'random' }],
    'with a host network': [{ type: 'Edge', hostNetwork: true }],
    'annotations beyond all measure': [
      { annotations: { a: 'x'.repeat(262_144) } },
      /262144 bytes at most/,
    ],
  }
  for (const [what, [spec, said]] of Object.entries(cases)) {
    const refusal = validateNewPool(pool(spec))
    t.equal(refusal?.code, said && 422, what)
    if (said) t.match(refusal?.message, said, what)
  }
})

void t.test('an old mistake in a pool does not block changes to other fields', async (t) => {
  const old = { type: 'Cloud', hostNetwork: true, annotations: { '-&#foo': '' } }
  t.equal(validatePoolUpdate(pool(old), pool({ ...old, labels: { a: 'b' } })), undefined)
  t.match(validatePoolUpdate(pool(old), pool({ ...old, labels: { a: '!' } })), { code: 403 })
})

void t.test('a pool is deleted when no node is in it', async (t) => {
  t.equal(validatePoolDeletion(pool({}), 0), undefined)
  t.match(validatePoolDeletion(pool({}), 2), { code: 403, message: /2 nodes are in the pool/ })
  t.match(validatePoolDeletion(pool({}), 'unknown'), { code: 403, message: /cannot be found out/ })
})

void t.test('malformed pools are refused or defaulted, and nothing throws', async (t) => {
  for (const odd of [{}, { spec: null }, { spec: [] }, { spec: { taints: {}, labels: 1 } }]) {
    t.ok(defaultedPool(odd))
    t.doesNotThrow(() => validateNewPool(odd))
    t.doesNotThrow(() => validatePoolUpdate(odd, odd))
  }
})
