import t from 'tap'
import {
  endDelayMs,
  reconnectRank,
  type ReconnectRank,
} from '../../../../src/hub/cache/cacher/reconnect-order.ts'
import { serviceAccount } from '../../../../src/api/request/identity.ts'
import { exchangeOf } from '../../../kit/exchange.ts'

const rank = (component: string, path: string): ReconnectRank => {
  const exchange = exchangeOf(`${path}?watch=true`, {
    headers: { 'User-Agent': `${component}/v1` },
  })
  if (!exchange.info.isResource) throw new Error(`${path} is no watch`)
  return reconnectRank(exchange, exchange.info)
}

void t.test('the node and its pods come first, and kubectl last', async (t) => {
  t.equal(rank('kubelet', '/api/v1/nodes'), 'node')
  t.equal(rank('kubelet', '/api/v1/pods'), 'node')
  t.equal(rank('kubelet', '/api/v1/namespaces/a/secrets'), 'references')
  t.equal(rank('kubelet', '/api/v1/namespaces/a/configmaps'), 'references')
  t.equal(rank('kubelet', '/api/v1/services'), 'endpoints')
  t.equal(rank('kube-proxy', '/apis/discovery.k8s.io/v1/endpointslices'), 'endpoints')
  t.equal(rank('kubelet', '/apis/node.k8s.io/v1/runtimeclasses'), 'rest')
  t.equal(rank('flanneld', '/api/v1/nodes'), 'rest')
  t.equal(rank('manager', '/api/v1/pods'), 'rest')
  t.equal(rank('kubectl', '/api/v1/pods'), 'people')
})

void t.test('a User-Agent alone makes no kubelet', async (t) => {
  const identity = serviceAccount({ namespace: 'a', name: 'b', uid: 'c' })
  const exchange = { ...exchangeOf('/api/v1/pods?watch=true'), identity }
  if (!exchange.info.isResource) throw new Error('pods are resources')
  t.equal(reconnectRank(exchange, exchange.info), 'rest')
})

void t.test('ranks reconnect one after another, all within two seconds', async (t) => {
  const order: readonly ReconnectRank[] = ['node', 'references', 'endpoints', 'rest', 'people']
  let last = 0
  for (const rank of order) {
    const times = Array.from({ length: 200 }, () => endDelayMs(rank, 60_000))
    t.ok(Math.min(...times) >= last, rank)
    t.ok(new Set(times).size > 100, 'not at once')
    last = Math.max(...times)
  }
  t.ok(last <= 2_000)
})

void t.test(
  'a watch ends no sooner than 1.1 seconds after its begin, whatever its rank',
  async (t) => {
    t.equal(endDelayMs('node', 0), 1_100)
    t.equal(endDelayMs('node', 500), 600)
    t.ok(endDelayMs('people', 0) >= 1_500)
  },
)
