import t from 'tap'
import { nodeportisolation } from '../../filters/nodeportisolation.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { inputsOf } from '../kit/inputs.ts'
import { filterResult, createdFilter } from '../kit/filter-result.ts'

const pool = (name: string) => ({
  name,
  type: 'Edge',
  hostNetwork: undefined,
  labels: {},
  annotations: {},
})

const inHangzhou = createdFilter(nodeportisolation, { pool: pool('hangzhou') })

const service = (type: string, listen: string | undefined): JsonObject => ({
  kind: 'Service',
  apiVersion: 'v1',
  metadata: {
    name: 'a',
    namespace: 'default',
    resourceVersion: '1',
    ...(listen !== undefined && { annotations: { 'nodeport.openyurt.io/listen': listen } }),
  },
  spec: { type, clusterIP: '10.96.0.9', ports: [{ port: 80, nodePort: 30_080, targetPort: 80 }] },
})

// The ten cases of yurthub's own test, and what its rules say beyond them.
const cases: readonly (readonly [why: string, listen: string | undefined, shown: boolean])[] = [
  ['the pool is named', 'hangzhou', true],
  ['the pool is named among others', 'shanghai, hangzhou ,-beijing', true],
  ['the pool is left out', '-hangzhou,shanghai', false],
  ['only other pools are named', 'shanghai,beijing', false],
  ['only other pools are excluded, and none is included', '-shanghai', false],
  ['named twice, the first counts: it listens', 'hangzhou,-hangzhou', true],
  ['named twice, the first counts: it does not', '-hangzhou,hangzhou', false],
  ['all pools are meant', '*', true],
  ['all pools but this one', '*,-hangzhou', false],
  ['all pools but another one', '-shanghai,*', true],
  ['what begins alike is another pool', 'hangzhou-1,-hangzhou-2', false],
  ['-* means nothing', '-*', false],
  ['-* takes nothing from *', '-*,*', true],
  ['the annotation is empty', '', false],
  ['the annotation is not there', undefined, true],
]

for (const type of ['NodePort', 'LoadBalancer']) {
  void t.test(`a service of type ${type} is kept in the pools it names`, async (t) => {
    for (const [why, listen, shown] of cases) {
      t.equal(filterResult(t, inHangzhou, service(type, listen)), shown ? 'left' : 'withheld', why)
    }
  })
}

void t.test('a service without node ports is left alone', async (t) => {
  for (const type of ['ClusterIP', 'ExternalName']) {
    t.equal(filterResult(t, inHangzhou, service(type, 'shanghai')), 'left', type)
  }
})

void t.test('a node in no pool gets them all', async (t) => {
  t.equal(
    nodeportisolation.create(inputsOf({ pool: null }), () => undefined),
    undefined,
  )
})

void t.test('until the pool is known, answers wait for it', async (t) => {
  t.strictSame(nodeportisolation.awaits, ['pool'])
})
