import t from 'tap'
import { poolDefinition } from '../../../src/cluster/crd/definition.ts'
import type { Json } from '../../../src/api/kube/json.ts'
import { listAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'

const definition = JSON.parse(
  JSON.stringify(
    poolDefinition({ at: { namespace: 'nodehub-system', name: 'nodehub-cluster', port: 443 } }),
  ),
) as Json

const versions = listAt(definition, 'spec', 'versions')
const version = (name: string): Json =>
  versions.find((each) => textAt(each, 'name') === name) ?? null
const fields = (name: string, section: string): string[] =>
  Object.keys(
    objectAt(version(name), 'schema', 'openAPIV3Schema', 'properties', section, 'properties'),
  ).toSorted()

void t.test('each version has the fields that OpenYurt gives it', async (t) => {
  const every = ['annotations', 'labels', 'taints', 'type']
  t.strictSame(fields('v1alpha1', 'spec'), [...every, 'selector'].toSorted())
  t.strictSame(fields('v1beta1', 'spec'), [...every, 'hostNetwork'].toSorted())
  const leadership = [
    'enableLeaderElection',
    'interConnectivity',
    'leaderElectionStrategy',
    'leaderNodeLabelSelector',
    'leaderReplicas',
    'poolScopeMetadata',
  ]
  t.strictSame(fields('v1beta2', 'spec'), [...every, 'hostNetwork', ...leadership].toSorted())
  const counts = ['nodes', 'readyNodeNum', 'unreadyNodeNum']
  t.strictSame(fields('v1alpha1', 'status'), counts)
  t.strictSame(fields('v1beta1', 'status'), counts)
  const leaders = ['conditions', 'leaderEndpoints', 'leaderLastElectedTime', 'leaderNum']
  t.strictSame(fields('v1beta2', 'status'), [...counts, ...leaders].toSorted())
})

void t.test('a caBundle is set if there is one', async (t) => {
  const service = { at: { namespace: 'a', name: 'b', port: 1 } }
  const { webhook } = poolDefinition({ ...service, caBundle: 'PEM' }).spec.conversion
  t.match(webhook.clientConfig, { caBundle: 'UEVN', service: { path: '/convert' } })
  t.notHas(poolDefinition(service).spec.conversion.webhook.clientConfig, { caBundle: '' })
})
