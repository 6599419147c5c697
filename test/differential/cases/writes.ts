import { toProtobuf } from '../../../src/sandbox/protobuf.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { get, own, protobuf, write, type RequestCase } from '../request-case.ts'

const core = `/api/v1/namespaces/${own}`
const maps = `${core}/configmaps`
const deployments = `/apis/apps/v1/namespaces/${own}/deployments`

const map = (name: string, data: object = { a: '1' }): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: own },
  data,
})

const inProtobuf = (kind: string, object: JsonObject): Buffer =>
  toProtobuf({ group: '', version: 'v1', kind }, { apiVersion: 'v1', kind, ...object })

const pod = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: own, labels: { app: name } },
  spec: { containers: [{ name: 'main', image: 'registry.example/main:1' }], ...spec },
})

const yaml = { 'Content-Type': 'application/yaml' }
const asProtobuf = { 'Content-Type': protobuf, Accept: protobuf }
const patch = (type: string): { 'Content-Type': string } => ({
  'Content-Type': `application/${type}`,
})
const merge = patch('merge-patch+json')
const strategic = patch('strategic-merge-patch+json')
const operations = patch('json-patch+json')
const apply = patch('apply-patch+yaml')

/**
 * Writes in an order in which each finds what it needs; every way in has a namespace to itself for
 * them.
 */
export const writes: readonly RequestCase[] = [
  write('POST', maps, map('one')),
  write('POST', maps, map('one')),
  write('POST', `${maps}?dryRun=All`, map('dry')),
  write('POST', `${maps}?dryRun=Some`, map('dry')),
  write('POST', `${maps}?fieldManager=tester&fieldValidation=Strict`, {
    ...map('strict'),
    unknown: 1,
  }),
  write('POST', `${maps}?fieldValidation=Warn`, { ...map('warned'), unknown: 1 }),
  write('POST', `${maps}?pretty=true`, map('pretty')),
  write('POST', maps, { ...map(''), metadata: { generateName: 'generated-', namespace: own } }),
  write('POST', maps, 'kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: yaml\n', yaml),
  write(
    'POST',
    maps,
    inProtobuf('ConfigMap', { metadata: { name: 'pb', namespace: own }, data: { a: '1' } }),
    asProtobuf,
  ),
  { ...write('POST', maps, map('in-chunks')), chunked: true },
  write('POST', maps, map('awaited'), { Prefer: 'return=minimal' }),
  write('POST', maps, map('tabled'), { Accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
  write('POST', maps, map('metadata'), {
    Accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  }),
  get(`${maps}/one`, { Accept: protobuf }),
  write('PUT', `${maps}/one`, map('one', { a: '2' })),
  write('PUT', `${maps}/one`, {
    ...map('one'),
    metadata: { name: 'one', namespace: own, resourceVersion: '1' },
  }),
  write('PUT', `${maps}/one`, { ...map('one'), metadata: { name: 'other', namespace: own } }),
  write(
    'PUT',
    `${maps}/pb`,
    inProtobuf('ConfigMap', { metadata: { name: 'pb', namespace: own }, data: { a: '2' } }),
    asProtobuf,
  ),
  write('PUT', `${maps}/nothing`, map('nothing')),
  write('PUT', maps, map('one')),
  write('PATCH', `${maps}/one`, { metadata: { labels: { a: 'b' } } }, merge),
  write('PATCH', `${maps}/one`, { data: { b: '1' } }, strategic),
  write('PATCH', `${maps}/one`, [{ op: 'add', path: '/data/c', value: '1' }], operations),
  write('PATCH', `${maps}/one`, [{ op: 'test', path: '/data/c', value: '2' }], operations),
  write('PATCH', `${maps}/one`, [{ op: 'remove', path: '/data/nothing' }], operations),
  write('PATCH', `${maps}/one`, '{', merge),
  write(
    'PATCH',
    `${maps}/one`,
    { metadata: { labels: { a: 'b' } } },
    { 'Content-Type': 'application/json' },
  ),
  write('PATCH', `${maps}/one?dryRun=All`, { data: { dry: '1' } }, merge),
  write('PATCH', `${maps}/one`, { data: { d: '1' } }, { ...merge, Accept: protobuf }),
  write('PATCH', `${maps}/applied?fieldManager=tester`, JSON.stringify(map('applied')), apply),
  write(
    'PATCH',
    `${maps}/applied?fieldManager=tester`,
    JSON.stringify(map('applied', { b: '2' })),
    apply,
  ),
  write(
    'PATCH',
    `${maps}/applied?fieldManager=other`,
    JSON.stringify(map('applied', { b: '3' })),
    apply,
  ),
  write(
    'PATCH',
    `${maps}/applied?fieldManager=other&force=true`,
    JSON.stringify(map('applied', { b: '3' })),
    apply,
  ),
  write('PATCH', `${maps}/applied`, JSON.stringify(map('applied')), apply),
  write('PATCH', `${maps}/one`, 'data:\n  e: "1"\n', {
    'Content-Type': 'application/merge-patch+yaml',
  }),
  write('PATCH', maps, { data: {} }, merge),
  write('POST', `${core}/pods`, pod('bound')),
  write('POST', `${core}/pods/bound/binding`, {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: 'bound', namespace: own },
    target: { apiVersion: 'v1', kind: 'Node', name: 'edge-1' },
  }),
  write('POST', `${core}/pods/bound/binding`, {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name: 'bound', namespace: own },
    target: { apiVersion: 'v1', kind: 'Node', name: 'edge-2' },
  }),
  write(
    'PATCH',
    `${core}/pods/bound/status`,
    { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
    strategic,
  ),
  write(
    'PATCH',
    `${core}/pods/bound/ephemeralcontainers`,
    { spec: { ephemeralContainers: [{ name: 'debug', image: 'registry.example/debug:1' }] } },
    strategic,
  ),
  write('PATCH', `${core}/pods/bound`, { spec: { nodeName: 'other' } }, merge),
  write('PUT', `${core}/pods/bound/eviction`, {}),
  write('POST', `${core}/pods/bound/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'bound', namespace: own },
  }),
  write('POST', `${core}/pods`, pod('guarded', { nodeName: 'edge-1' })),
  {
    ...write('POST', `/apis/policy/v1/namespaces/${own}/poddisruptionbudgets`, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'guard', namespace: own },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
    }),
  },
  write(
    'PATCH',
    `${core}/pods/guarded/status`,
    { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
    strategic,
  ),
  write('POST', `${core}/pods/guarded/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'guarded', namespace: own },
  }),
  write(
    'POST',
    `${core}/pods`,
    inProtobuf('Pod', { ...(pod('in-protobuf') as JsonObject) }),
    asProtobuf,
  ),
  write('POST', `${core}/pods`, { ...pod('bad'), spec: { containers: [] } }),
  write('POST', `${core}/pods`, { ...pod('bad'), spec: { containers: [] } }, { Accept: protobuf }),
  write('POST', deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: own },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'main', image: 'registry.example/main:1' }] },
      },
    },
  }),
  get(`${deployments}/web/scale`),
  write('PUT', `${deployments}/web/scale`, {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name: 'web', namespace: own },
    spec: { replicas: 3 },
  }),
  write('PATCH', `${deployments}/web/scale`, { spec: { replicas: 2 } }, merge),
  write('PATCH', `${deployments}/web/status`, { status: { replicas: 2 } }, merge),
  write('POST', `${core}/serviceaccounts`, { metadata: { name: 'robot', namespace: own } }),
  write('POST', `${core}/serviceaccounts/robot/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 3600 },
  }),
  write('POST', `${core}/serviceaccounts/robot/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 1 },
  }),
  write('POST', `${core}/serviceaccounts/nobody/token`, { spec: {} }),
  write('POST', `${core}/events`, {
    metadata: { name: 'e.1', namespace: own },
    involvedObject: { kind: 'Pod', namespace: own, name: 'bound' },
    reason: 'Started',
    type: 'Normal',
  }),
  write('POST', `/apis/coordination.k8s.io/v1/namespaces/${own}/leases`, {
    metadata: { name: 'l', namespace: own },
    spec: { holderIdentity: 'edge-1', leaseDurationSeconds: 40 },
  }),
  write('PUT', `/apis/coordination.k8s.io/v1/namespaces/${own}/leases/l`, {
    metadata: { name: 'l', namespace: own },
    spec: { holderIdentity: 'edge-1', leaseDurationSeconds: 41 },
  }),
  write('POST', '/api/v1/nodes', { metadata: { name: `node-${own}` } }),
  write(
    'PATCH',
    `/api/v1/nodes/node-${own}/status`,
    { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
    strategic,
  ),
  write('DELETE', `/api/v1/nodes/node-${own}`),
  write('POST', `/apis/example.com/v1/namespaces/${own}/widgets`, {
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', namespace: own },
    spec: { size: 1 },
  }),
  write('PATCH', `/apis/example.com/v1/namespaces/${own}/widgets/w`, { spec: { size: 2 } }, merge),
  write(
    'PATCH',
    `/apis/example.com/v1/namespaces/${own}/widgets/w`,
    { spec: { size: 2 } },
    strategic,
  ),
  write('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
  }),
  write('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb: 'get', resource: 'pods', namespace: own } },
  }),
  write('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: 'jane', resourceAttributes: { verb: 'get', resource: 'pods', namespace: own } },
  }),
  write('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token: 'rubbish' },
  }),
  write('DELETE', `${core}/pods/guarded?gracePeriodSeconds=0`),
  write('DELETE', `${core}/pods/in-protobuf`, {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    gracePeriodSeconds: 0,
  }),
  write('DELETE', `${maps}/yaml`, {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    preconditions: { uid: 'other' },
  }),
  write('DELETE', `${maps}/yaml?dryRun=All`),
  write('DELETE', `${maps}/yaml`),
  write('DELETE', `${maps}/yaml`),
  write('DELETE', `${maps}/pretty?propagationPolicy=Orphan`),
  write('DELETE', `${maps}/pb`, undefined, { Accept: protobuf }),
  write('DELETE', `${maps}?labelSelector=a%3Db`),
  write('DELETE', maps, { kind: 'DeleteOptions', apiVersion: 'v1' }),
  write('DELETE', `${core}/pods/a/status`),
  get(maps),
]
