import t from 'tap'
import type { ClusterLookup } from '../../../src/cluster/admission/lookup.ts'
import { webhookPaths } from '../../../src/cluster/admission/paths.ts'
import { reviewAdmission, type AdmissionOptions } from '../../../src/cluster/admission/review.ts'
import { isObject, type Json, type JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt, objectAt, textAt, withAt } from '../../../src/api/kube/json-at.ts'
import type { PatchOperation } from '../../../src/cluster/admission/json-patch.ts'
import { lookupOf, poolNamed } from './pool-lookup.ts'

const { poolDefaults, poolRules, nodeDefaults, podDefaults, workloadWarnings } = webhookPaths

const rules = (more: Partial<AdmissionOptions> = {}): AdmissionOptions => ({
  lookup: lookupOf(poolNamed('host', { hostNetwork: true }), poolNamed('standard')),
  propagate: false,
  ...more,
})

const review = (kind: string, operation: string, request: JsonObject): JsonObject => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u-1',
    kind: { group: '', version: 'v1', kind },
    operation,
    userInfo: { username: 'admin' },
    object: null,
    oldObject: null,
    ...request,
  },
})

interface Outcome {
  readonly allowed: boolean
  readonly object: JsonObject
  readonly warnings: Json
  readonly status: JsonObject
}

/** The object as an API server has it after the operations. */
function patched(object: JsonObject, operations: readonly PatchOperation[]): JsonObject {
  const document = structuredClone(object)
  for (const operation of operations) {
    const steps = operation.path
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    const last = steps.pop() ?? ''
    let parent: Record<string, unknown> = document
    for (const step of steps) parent = parent[step] as Record<string, unknown>
    if (operation.op === 'remove') delete parent[last]
    else parent[last === '-' ? String(parent['length']) : last] = operation.value
  }
  return document
}

async function outcome(path: string, asked: JsonObject, by = rules()): Promise<Outcome> {
  const answer = await reviewAdmission(path, asked, by)
  const response = objectAt(answer, 'response')
  const patch = Buffer.from(textAt(response, 'patch'), 'base64').toString()
  const object = objectAt(asked, 'request', 'object')
  return {
    allowed: response['allowed'] === true,
    object: patch === '' ? object : patched(object, JSON.parse(patch) as PatchOperation[]),
    warnings: valueAt(response, 'warnings') ?? [],
    status: objectAt(response, 'status'),
  }
}

const node = (labels: JsonObject = {}): JsonObject => ({
  kind: 'Node',
  metadata: { name: 'edge-1', labels },
})
const pool = (spec: JsonObject): JsonObject => ({
  apiVersion: 'apps.openyurt.io/v1beta2',
  kind: 'NodePool',
  metadata: { name: 'p' },
  spec,
})
const pod = (annotations: JsonObject = {}, rest: JsonObject = {}): JsonObject => ({
  kind: 'Pod',
  metadata: { generateName: 'a-', annotations, ...rest },
  spec: { containers: [] },
})
const excluded = { 'apps.openyurt.io/exclude-host-network-pool': 'true' }
const terms = [
  'spec',
  'affinity',
  'nodeAffinity',
  'requiredDuringSchedulingIgnoredDuringExecution',
  'nodeSelectorTerms',
]

void t.test('an unchanged object gets no patch', async (t) => {
  const answer = await reviewAdmission(
    podDefaults,
    review('Pod', 'CREATE', { object: pod() }),
    rules(),
  )
  t.strictSame(answer, {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: 'u-1', allowed: true },
  })
})

void t.test('a mirror pod is left alone, annotation or not', async (t) => {
  const mirror = pod({ ...excluded, 'kubernetes.io/config.mirror': 'x' })
  const { object } = await outcome(podDefaults, review('Pod', 'CREATE', { object: mirror }))
  t.equal(valueAt(object, ...terms), undefined)
})

void t.test('creating a pod returns lint’s warnings', async (t) => {
  const lookup: ClusterLookup = {
    ...lookupOf(),
    context: async (namespace) => ({
      pools: new Map(),
      namespaces: new Map([[namespace, { enforce: 'baseline' }]]),
    }),
  }
  const object = withAt(pod(), ['spec', 'hostNetwork'], true)
  const asked = review('Pod', 'CREATE', { object, namespace: 'shop' })
  const { warnings } = await outcome(podDefaults, asked, rules({ lookup }))
  t.match(warnings, [/baseline/])
})

const atHost = { nodeSelector: { 'apps.openyurt.io/nodepool': 'host' } }

const workload = (
  kind: string,
  spec: JsonObject = atHost,
  metadata: JsonObject = {},
): JsonObject => {
  const template = { metadata, spec }
  return {
    kind,
    metadata: { name: 'shop' },
    spec: kind === 'CronJob' ? { jobTemplate: { spec: { template } } } : { template },
  }
}

const knowingPools: ClusterLookup = {
  ...lookupOf(poolNamed('host', { hostNetwork: true })),
  context: async () => ({
    pools: new Map([['host', { hostNetwork: true, nodes: 1 }]]),
    namespaces: new Map(),
  }),
}

void t.test('writing a workload returns lint’s warnings for its pods', async (t) => {
  const by = rules({ lookup: knowingPools })
  for (const kind of ['Deployment', 'DaemonSet', 'StatefulSet', 'Job', 'CronJob'])
    for (const operation of ['CREATE', 'UPDATE']) {
      const object = workload(kind)
      const asked = review(kind, operation, { object, oldObject: object, namespace: 'shops' })
      const { allowed, object: after, warnings } = await outcome(workloadWarnings, asked, by)
      t.match(warnings, [/can run in host alone.*\(no-pod-network\)$/], `${kind} ${operation}`)
      t.ok(allowed)
      t.equal(after, object, 'nothing is changed')
    }
  const ports = [{ name: 'c', ports: [{ containerPort: 8080 }] }]
  const many = workload('Deployment', { ...atHost, hostNetwork: true, containers: ports })
  const asked = review('Deployment', 'CREATE', { object: withAt(many, ['spec', 'replicas'], 2) })
  t.match((await outcome(workloadWarnings, asked, by)).warnings, [
    /2 pods that each take port 8080/,
  ])
})

void t.test('warnings for a template match admission of its pods', async (t) => {
  const by = rules({ lookup: knowingPools, propagate: true })
  const said = async (object: JsonObject): Promise<Json> =>
    (await outcome(workloadWarnings, review(textAt(object, 'kind'), 'CREATE', { object }), by))
      .warnings
  t.match(await said(workload('Deployment')), [/declares a port.*\(undeclared-port\)$/])
  t.strictSame(await said(workload('DaemonSet', {})), [], 'each pod gets the network of its node')
  const labels = { 'apps.openyurt.io/pool-name': 'nowhere' }
  t.match(await said(workload('Job', {}, { labels })), ['there is no NodePool nowhere', String])
  const kept = workload('Job', atHost, { annotations: excluded })
  t.match(await said(kept), [/stays Pending.*\(never-scheduled\)$/])
})

void t.test('a kubelet that registers is never refused', async (t) => {
  for (const name of ['host', 'standard', 'gone', 'unread']) {
    const object = node({
      'apps.openyurt.io/nodepool': name,
      'nodepool.openyurt.io/hostnetwork': 'maybe',
    })
    const registered = await outcome(nodeDefaults, review('Node', 'CREATE', { object }))
    t.match(registered, { allowed: true }, name)
  }
})

void t.test('an invalid review is refused with its uid, or a bad request', async (t) => {
  const refused: [string, string, JsonObject][] = [
    ['another kind', nodeDefaults, review('Pod', 'CREATE', { object: pod() })],
    ['no object', nodeDefaults, review('Node', 'CREATE', {})],
    ['a list for an object', nodeDefaults, review('Node', 'CREATE', { object: [] })],
    ['no old object', nodeDefaults, review('Node', 'UPDATE', { object: node() })],
    ['nothing that is deleted', poolRules, review('NodePool', 'DELETE', {})],
    ['an operation of no webhook', poolRules, review('NodePool', 'CONNECT', { object: pool({}) })],
    ['a path there is not', '/mutate/services', review('Node', 'CREATE', { object: node() })],
  ]
  for (const [what, path, asked] of refused)
    t.match(
      await reviewAdmission(path, asked, rules()),
      { response: { uid: 'u-1', allowed: false, status: { code: 400 } } },
      what,
    )
  const nonsense: Json[] = [
    null,
    1,
    [],
    {},
    { apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview', request: { uid: 'u' } },
    { apiVersion: 'admission.k8s.io/v1', kind: 'ConversionReview', request: { uid: 'u' } },
    { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
    { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: 7 } },
    review('Node', 'CREATE', { object: deep(300) }),
  ]
  for (const asked of nonsense) {
    const answer: unknown = await reviewAdmission(nodeDefaults, asked, rules()).catch(
      (cause) => cause,
    )
    t.match(answer, { status: { code: 400 } }, JSON.stringify(asked).slice(0, 60))
  }
})

const deep = (levels: number): Json => (levels === 0 ? {} : { a: deep(levels - 1) })

void t.test('a field of another type breaks nothing', async (t) => {
  const odd: Json[] = [null, 1, 'x', [], [null], {}, { a: [] }, true]
  for (const [path, kind] of [
    [podDefaults, 'Pod'],
    [workloadWarnings, 'Deployment'],
    [workloadWarnings, 'CronJob'],
    [nodeDefaults, 'Node'],
    [poolDefaults, 'NodePool'],
    [poolRules, 'NodePool'],
  ] as const)
    for (const metadata of odd)
      for (const spec of odd) {
        const object = isObject(metadata)
          ? { metadata: { annotations: excluded, labels: spec }, spec }
          : { metadata, spec }
        for (const operation of ['CREATE', 'UPDATE', 'DELETE']) {
          const asked = review(kind, operation, { object, oldObject: object })
          const on = rules({ propagate: true })
          t.equal(textAt(await reviewAdmission(path, asked, on), 'response', 'uid'), 'u-1')
        }
      }
})
