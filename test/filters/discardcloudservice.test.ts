import t from 'tap'
import { discardcloudservice } from '../../filters/discardcloudservice.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { filterResult, createdFilter } from '../kit/filter-result.ts'

const filter = createdFilter(discardcloudservice, {})

const service = (type: string, metadata: JsonObject): JsonObject => ({
  kind: 'Service',
  apiVersion: 'v1',
  metadata: { name: 'a', namespace: 'default', resourceVersion: '1', ...metadata },
  spec: { type, clusterIP: '10.96.0.9' },
})

const discard = (value: string): JsonObject => ({
  annotations: { 'svc.openyurt.io/discard': value },
})

void t.test('an annotated load balancer is dropped', async (t) => {
  t.equal(filterResult(t, filter, service('LoadBalancer', discard('true'))), 'withheld')
})

void t.test('the tunnel’s service is dropped, whatever its type', async (t) => {
  const tunnel = { name: 'x-tunnel-server-internal-svc', namespace: 'kube-system' }
  for (const type of ['ClusterIP', 'NodePort', 'LoadBalancer']) {
    t.equal(filterResult(t, filter, service(type, tunnel)), 'withheld', type)
  }
  t.equal(
    filterResult(t, filter, service('ClusterIP', { ...tunnel, namespace: 'default' })),
    'left',
  )
})

void t.test('a load balancer without annotation is kept', async (t) => {
  t.equal(filterResult(t, filter, service('LoadBalancer', {})), 'left')
  for (const value of ['false', '', 'True']) {
    t.equal(filterResult(t, filter, service('LoadBalancer', discard(value))), 'left', value)
  }
  const older = { annotations: { 'openyurt.io/skip-discard': 'true' } }
  t.equal(filterResult(t, filter, service('LoadBalancer', older)), 'left')
})

void t.test('an annotated service of another type is kept', async (t) => {
  for (const type of ['ClusterIP', 'NodePort', 'ExternalName']) {
    t.equal(filterResult(t, filter, service(type, discard('true'))), 'left', type)
  }
})
