import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { manifests } from '../../src/cli/manifests.ts'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { listAt, textAt, valueAt } from '../../src/api/kube/json-at.ts'
import { persistentVolumes, pods, volumeAttachments } from '../../src/api/kube/resources.ts'
import { PodReferencesByVersion } from '../../src/hub/boot/pod-references.ts'
import { podRelations, relationsOf } from '../../src/hub/authorization/node-relations.ts'
import { accountToken } from './account-token.ts'
import { Random } from '../fuzz/random.ts'
import { FakeKubeletCache } from '../hub/boot/fake-kubelet-cache.ts'
import { castOf, nodeQuestion, policiesOf, questionFor } from '../hub/authorization/generated.ts'
import { answerTo, apiServerAuthorizer, bindingTo, roleOf } from '../hub/authorization/policies.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import { Client } from '../kit/client.ts'
import {
  noControlPlane,
  nodeSubject,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? false

const seed = 16
const rounds = 24
const questionsOfRound = 100
const questionsOfNodes = 1_200
const nodeName = 'edge-1'
const namespace = 'plant'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const plurals: Readonly<Record<string, string>> = {
  Role: 'roles',
  RoleBinding: 'rolebindings',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
}

async function create(admin: ApiClient, path: string, object: Json): Promise<void> {
  const { status, body } = await admin.post(path, object)
  if (status !== 201) throw new Error(`${path}: ${status} ${body.toString()}`)
}

function createPolicy(admin: ApiClient, object: JsonObject): Promise<void> {
  const [kind, of] = [textAt(object, 'kind'), textAt(object, 'metadata', 'namespace')]
  const scope = of === '' ? '' : `/namespaces/${of}`
  return create(admin, `${rbac}${scope}/${plurals[kind] ?? ''}`, object)
}

const createNamespace = (admin: ApiClient, name: string): Promise<void> =>
  create(admin, '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  })

/** All policies, with those that the cluster has from its start. */
async function allPolicies(admin: ApiClient): Promise<readonly Json[]> {
  const lists = Object.entries(plurals).map(async ([kind, plural]) => {
    const { body } = await admin.get(`${rbac}/${plural}`)
    const items = listAt(JSON.parse(body.toString()) as Json, 'items')
    return items.map((item) => ({ ...(item as JsonObject), kind }))
  })
  return (await Promise.all(lists)).flat()
}

async function minorOf(admin: ApiClient): Promise<number> {
  const version = JSON.parse((await admin.get('/version')).body.toString()) as Json
  return Number.parseInt(textAt(version, 'minor'), 10)
}

const review = (spec: JsonObject): JsonObject => ({
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SubjectAccessReview',
  spec,
})

const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews'

async function isAllowed(admin: ApiClient, spec: JsonObject): Promise<boolean> {
  const { status, body } = await admin.post(reviews, review(spec))
  if (status !== 201) throw new Error(`${JSON.stringify(spec)}: ${status} ${body.toString()}`)
  return valueAt(JSON.parse(body.toString()) as Json, 'status', 'allowed') === true
}

const inSpec = (user: string, of: string): JsonObject => ({
  user,
  resourceAttributes: { verb: 'look', resource: 'last', namespace: of },
})

/** Waits until the API server decides by all policies that were written before. */
async function decidesByAll(admin: ApiClient, of: string): Promise<void> {
  const rule = { verbs: ['look'], apiGroups: [''], resources: ['last'] }
  const subjects = (name: string) => [{ kind: 'User', name }]
  for (const policy of [
    roleOf('last', [rule], of),
    roleOf('last', [rule]),
    bindingTo('last', { kind: 'Role', name: 'last' }, subjects('last-a'), of),
    bindingTo('last', { kind: 'ClusterRole', name: 'last' }, subjects('last-b')),
  ]) {
    await createPolicy(admin, policy)
  }
  for (const user of ['last-a', 'last-b']) {
    await until(`the rights of ${user}`, () => isAllowed(admin, inSpec(user, of)))
  }
}

/** The questions that the API server and the hub answer differently. */
async function differencesOf(
  admin: ApiClient,
  questions: readonly JsonObject[],
  answer: (spec: JsonObject) => string,
): Promise<{ readonly found: readonly unknown[]; readonly answered: Map<string, number> }> {
  const found: unknown[] = []
  const answered = new Map<string, number>()
  const left = questions.values()
  const lane = async (): Promise<void> => {
    for (const spec of left) {
      const allowed = await isAllowed(admin, spec)
      const ours = answer(spec)
      answered.set(ours, (answered.get(ours) ?? 0) + 1)
      const theirs = allowed ? 'allowed' : 'no-opinion'
      if (ours !== 'unknown' && ours !== theirs) found.push({ ours, theirs, spec })
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  return { found, answered }
}

void t.test(
  'the hub answers thousands of access reviews as RBAC does',
  { skip, timeout: 300_000 },
  async (t) => {
    const { admin } = await startControlPlane(t)
    const random = new Random(seed)
    const generated = Array.from({ length: rounds }, (_, round) => policiesOf(random, round))
    for (const [round, each] of generated.entries()) {
      for (const name of castOf(round).namespaces) await createNamespace(admin, name)
      await Promise.all(each.map((policy) => createPolicy(admin, policy)))
    }
    await decidesByAll(admin, castOf(0).namespaces[0] ?? '')
    const policies = await allPolicies(admin)
    const authorize = apiServerAuthorizer(policies, () => undefined, await minorOf(admin))
    const questions = Array.from({ length: rounds * questionsOfRound }, (_, at) =>
      questionFor(random, at % rounds, generated[at % rounds] ?? []),
    )
    const { found, answered } = await differencesOf(admin, questions, (spec) =>
      answerTo(authorize, spec),
    )
    t.strictSame(found, [], `seed ${seed}`)
    t.comment(`${policies.length} policies`, Object.fromEntries(answered))
    t.equal(answered.get('unknown'), undefined, 'every question is answered')
    const [yes = 0, no = 0] = [answered.get('allowed'), answered.get('no-opinion')]
    t.ok(yes > 400 && no > 400, `neither answer is rare: ${yes} and ${no}`)
  },
)

const podOf = (name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, ...metadata },
  spec: {
    nodeName,
    serviceAccountName: 'robot',
    containers: [{ name: 'main', image: 'main', ...spec }],
    volumes: [
      { name: 's', secret: { secretName: 'volume' } },
      { name: 'c', configMap: { name: 'volume' } },
      { name: 'p', persistentVolumeClaim: { claimName: 'data' } },
    ],
    resourceClaims: [{ name: 'camera', resourceClaimName: 'camera' }],
    tolerations: [{ operator: 'Exists' }],
  },
})

const volume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'data' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    hostPath: { path: '/data' },
    claimRef: { namespace, name: 'data' },
  },
}

const attachmentTo = (name: string, node: string): JsonObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  metadata: { name },
  spec: { nodeName: node, attacher: 'example.com', source: { persistentVolumeName: 'data' } },
})

const mirror = (token: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'mirror',
    namespace,
    annotations: { 'kubernetes.io/config.mirror': token },
  },
  spec: { nodeName, containers: [{ name: 'main', image: 'main' }] },
})

void t.test(
  'the hub authorizes nodes as the API server does',
  { skip, timeout: 300_000 },
  async (t) => {
    const { admin } = await startControlPlane(t)
    await createNamespace(admin, namespace)
    const core = `/api/v1/namespaces/${namespace}`
    await create(admin, `${core}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot' },
    })
    await create(admin, `${core}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default' },
    })
    await create(admin, '/api/v1/persistentvolumes', volume)
    const attachments = [attachmentTo('mine', nodeName), attachmentTo('another', 'edge-2')]
    for (const attachment of attachments) {
      await create(admin, '/apis/storage.k8s.io/v1/volumeattachments', attachment)
    }
    const env = [
      { name: 'A', valueFrom: { secretKeyRef: { name: 'env', key: 'a', optional: true } } },
      { name: 'B', valueFrom: { configMapKeyRef: { name: 'env', key: 'b', optional: true } } },
    ]
    await create(admin, `${core}/pods`, mirror('h'))
    await create(admin, `${core}/pods`, podOf('press', { env }))
    const node = (resource: string, name: string): JsonObject => ({
      user: `system:node:${nodeName}`,
      groups: ['system:nodes'],
      resourceAttributes: { verb: 'get', resource, name, namespace },
    })
    await until('the pod in the graph', () => isAllowed(admin, node('pods', 'press')))
    await until('the volume in the graph', () =>
      isAllowed(admin, {
        user: `system:node:${nodeName}`,
        groups: ['system:nodes'],
        resourceAttributes: { verb: 'get', resource: 'persistentvolumes', name: 'data' },
      }),
    )
    const { body } = await admin.get(`${core}/pods`)
    const items = listAt(JSON.parse(body.toString()) as Json, 'items') as readonly JsonObject[]
    const cache = new FakeKubeletCache('json')
      .list({ gvr: pods, fieldSelector: `spec.nodeName=${nodeName}` }, 'Pod', items)
      .put(persistentVolumes, '', 'data', volume)
    for (const attachment of attachments) {
      cache.put(volumeAttachments, '', textAt(attachment, 'metadata', 'name'), attachment)
    }
    const references = new PodReferencesByVersion()
    const relations = podRelations({ nodeName, cache, references })
    const isRelated = relationsOf({ nodeName, cache: () => cache, pods: () => relations })
    const authorize = apiServerAuthorizer(await allPolicies(admin), isRelated, await minorOf(admin))
    const random = new Random(seed)
    const questions = Array.from({ length: questionsOfNodes }, () =>
      nodeQuestion(random, namespace),
    )
    const { found, answered } = await differencesOf(admin, questions, (spec) =>
      answerTo(authorize, spec),
    )
    t.strictSame(found, [], `seed ${seed}`)
    t.comment(Object.fromEntries(answered))
    t.ok((answered.get('allowed') ?? 0) > 50, 'some are allowed')
    t.ok((answered.get('unknown') ?? 0) < questions.length / 4, 'most are answered')
  },
)

/** Lets nodes read the policies, as an operator does. */
async function letNodesRead(admin: ApiClient): Promise<void> {
  const printed: string[] = []
  const terminal = { out: (text: string) => printed.push(text), err: () => undefined }
  await manifests.run(['--part=rbac', '--offline-authorization=rbac'], terminal)
  for (const document of parseAllDocuments(printed.join(''))) {
    await createPolicy(admin, document.toJS() as JsonObject)
  }
}

void t.test(
  'a hub that has read RBAC answers offline as the API server did',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const { admin } = plane
    const random = new Random(seed)
    const policies = policiesOf(random, 0)
    await until('the namespace of the hubs', async () => {
      const { status } = await admin.get('/api/v1/namespaces/kube-system')
      return status === 200
    })
    await letNodesRead(admin)
    for (const name of castOf(0).namespaces) await createNamespace(admin, name)
    for (const policy of policies) await createPolicy(admin, policy)
    await decidesByAll(admin, castOf(0).namespaces[0] ?? '')
    const hub = await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
      nodeName,
      flags: ['--offline-authorization=rbac'],
    })
    const ops = new ApiClient(hub.opsUrl)
    await until('all policies at the hub', async () => {
      const { body } = await ops.get('/readyz?verbose')
      return !body.toString().includes('--offline-authorization=rbac')
    })
    const asked: (readonly [JsonObject, boolean])[] = []
    for (let at = 0; at < 200; at++) {
      const spec = questionFor(random, 0, policies)
      asked.push([spec, await isAllowed(admin, spec)])
    }
    const robot = await withdrawnFrom(plane, castOf(0).namespaces[0] ?? '')
    await plane.first.daemon.kill()
    // The hub was killed as well, and knows of the policies what is on the disk.
    await hub.daemon.kill()
    await hub.daemon.start()
    const kubelet = new ApiClient(hub.url)
    await until('an answer without the API server', async () => {
      const { status } = await kubelet.post(reviews, review(asked[0]?.[0] ?? {}))
      return status === 201
    })
    const different: unknown[] = []
    for (const [spec, allowed] of asked) {
      const { status, body } = await kubelet.post(reviews, review(spec))
      const answer = JSON.parse(body.toString()) as Json
      const ours = status === 201 ? valueAt(answer, 'status', 'allowed') === true : status
      if (ours !== allowed) different.push({ spec, ours, allowed })
    }
    t.strictSame(different, [], `seed ${seed}`)
    const yes = asked.filter(([, allowed]) => allowed).length
    t.ok(yes > 20 && yes < 180, `neither answer is rare: ${yes} are allowed`)
    await t.test('with decisions, a caller gets the API server’s denials offline', async (t) => {
      await robot.restart()
      for (const [path, status] of robot.expected) {
        t.equal((await robot.client.get(path)).status, status, path)
      }
    })
  },
)

/**
 * A caller at a hub with `--offline-authorization=decisions`, after a role of it was taken away,
 * and what it is to be answered without the API server.
 */
async function withdrawnFrom(plane: ControlPlane, of: string) {
  const { admin } = plane
  const hub = await startHubProcess(plane.workspace, {
    servers: [plane.url],
    kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
    nodeName,
    folder: 'decisions',
    flags: ['--cache-components=*'],
  })
  const token = await accountToken(admin, 'robot', of)
  const client = new Client({ url: hub.url, component: 'robot', token })
  const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace: of }]
  const secrets = `/api/v1/namespaces/${of}/secrets`
  const configMaps = `/api/v1/namespaces/${of}/configmaps`
  for (const resource of ['secrets', 'configmaps']) {
    const rule = { verbs: ['list'], apiGroups: [''], resources: [resource] }
    await createPolicy(admin, roleOf(`robot-${resource}`, [rule], of))
    const role = { kind: 'Role', name: `robot-${resource}` }
    await createPolicy(admin, bindingTo(`robot-${resource}`, role, subjects, of))
  }
  const isAnswered = (path: string, status: number): Promise<unknown> =>
    until(`${status} to ${path}`, async () => (await client.get(path)).status === status)
  await isAnswered(secrets, 200)
  await isAnswered(configMaps, 200)
  await admin.send('DELETE', `${rbac}/namespaces/${of}/rolebindings/robot-secrets`)
  await isAnswered(secrets, 403)
  const restart = async (): Promise<void> => {
    await hub.daemon.kill()
    await hub.daemon.start()
  }
  const expected: readonly (readonly [path: string, status: number])[] = [
    [secrets, 403],
    [configMaps, 200],
    [`${configMaps}/none`, 404],
    [`${secrets}/any`, 503],
    ['/api/v1/secrets', 403],
  ]
  return { client, expected, restart }
}
