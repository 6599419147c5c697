import t from 'tap'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { mostRecordedReviews } from '../../src/hub/answers/recorded-reviews.ts'
import { bindingTo, roleOf } from '../hub/authorization/policies.ts'
import { at, objectOf, type Answer, type Client } from '../kit/client.ts'
import { configMaps, serviceAccounts } from '../kit/cloud.ts'
import { startCloud, startTestHub, type CloudServer, type TestHub } from '../kit/hub.ts'
import { createPolicies, defineRbacKinds, policyResource } from '../kit/policy-kinds.ts'
import { until } from '../kit/until.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const tokenReviews = '/apis/authentication.k8s.io/v1/tokenreviews'

const ask = (client: Client, spec: JsonObject, status: JsonObject = {}): Promise<Answer> =>
  client.send(`${authorization}/subjectaccessreviews`, {
    method: 'POST',
    body: {
      kind: 'SubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: {},
      spec,
      status,
    },
  })

const askOfSelf = (client: Client, resourceAttributes: JsonObject): Promise<Answer> =>
  client.send(`${authorization}/selfsubjectaccessreviews`, {
    method: 'POST',
    body: {
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      metadata: {},
      spec: { resourceAttributes },
      status: { allowed: false },
    },
  })

const review = (client: Client, token: string): Promise<Answer> =>
  client.send(tokenReviews, {
    method: 'POST',
    body: {
      kind: 'TokenReview',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: {},
      spec: { token },
      status: { user: {} },
    },
  })

const metrics = (user: string): JsonObject => ({
  user,
  groups: ['b', 'a'],
  resourceAttributes: { verb: 'get', resource: 'nodes', subresource: 'metrics', name: 'edge-1' },
})

const decisions = (kind: string, result: string): string =>
  `nodehub_offline_decisions_total{kind="${kind}",result="${result}"}`

async function cutOff(cloud: CloudServer, hub: TestHub): Promise<void> {
  await cloud.unplug()
  await hub.restart()
  await hub.offline()
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`reviews are answered offline as they were last: ${encoding}`, async (t) => {
    const cloud = await startCloud(t, { authorizer: ({ user }) => user.name !== 'mallory' })
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const kubelet = (): Client => hub.as('kubelet', { encoding })
    const token = cloud.sandbox.token('prometheus')
    await hub.online()
    for (const user of ['jane', 'mallory'])
      t.equal((await ask(kubelet(), metrics(user))).status, 201)
    t.equal((await review(kubelet(), token)).status, 201)
    t.equal((await askOfSelf(kubelet(), { verb: 'list', resource: 'pods' })).status, 201)
    await cutOff(cloud, hub)

    await t.test('yes and no, with their age', async (t) => {
      for (const [user, allowed] of [
        ['jane', true],
        ['mallory', false],
      ] as const) {
        const answer = await ask(kubelet(), { ...metrics(user), groups: ['a', 'b'] })
        t.equal(answer.status, 201, user)
        t.match(objectOf(answer), { kind: 'SubjectAccessReview', spec: { user } })
        t.equal(at(objectOf(answer), 'status', 'allowed') ?? false, allowed, user)
        t.match(answer.headers.age, /^\d+$/)
      }
      const self = await askOfSelf(kubelet(), { verb: 'list', resource: 'pods' })
      t.equal(at(objectOf(self), 'status', 'allowed'), true)
      t.ok((await hub.metric(decisions('review', 'allowed'))) >= 2)
      t.equal(await hub.metric(decisions('review', 'denied')), 1)
    })

    await t.test('whatever status the question is sent with', async (t) => {
      const status = { allowed: true, reason: 'I say so', evaluationError: 'none' }
      const answer = await ask(kubelet(), metrics('mallory'), status)
      t.equal(answer.status, 201)
      t.equal(at(objectOf(answer), 'status', 'allowed') ?? false, false)
      t.equal(at(objectOf(answer), 'status', 'reason') ?? '', '')
    })

    await t.test('a token, which is nowhere on the disk', async (t) => {
      const answer = await review(kubelet(), token)
      t.equal(at(objectOf(answer), 'status', 'authenticated'), true)
      t.equal(at(objectOf(answer), 'status', 'user', 'username'), 'prometheus')
      t.equal((await review(kubelet(), `${token}x`)).status, 503)
      for (const file of filesIn(hub.rootDir)) t.notOk(readFileSync(file).includes(token), file)
      t.notOk(hub.lines.some((line) => line.includes(token)))
    })

    await t.test('another question is not answered', async (t) => {
      for (const spec of [
        metrics('bob'),
        { ...metrics('jane'), groups: ['a'] },
        { ...metrics('jane'), resourceAttributes: { verb: 'get', resource: 'nodes' } },
      ]) {
        const answer = await ask(kubelet(), spec)
        t.equal(answer.status, 503, JSON.stringify(spec))
        t.equal(answer.headers['retry-after'], undefined)
      }
      t.ok((await hub.metric(decisions('review', 'unknown'))) >= 3)
    })
  })
}

void t.test(
  'made-up tokens, however many the kubelet asks about, do not make it forget a genuine one',
  async (t) => {
    const cloud = await startCloud(t)
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet')
    const token = cloud.sandbox.token('prometheus')
    await hub.online()
    await review(kubelet, token)
    const recorded = (): Promise<number> => hub.metric('nodehub_recorded_total{kind="review"}')
    const before = await recorded()
    for (let first = 0; first <= mostRecordedReviews; first += 64) {
      const answers = Array.from({ length: 64 }, (_, at) =>
        review(kubelet, `made up ${first + at}`),
      )
      t.ok((await Promise.all(answers)).every(({ status }) => status === 201))
    }
    t.equal(await recorded(), before, 'nothing is written of them')
    await cutOff(cloud, hub)
    const answer = await review(hub.as('kubelet'), token)
    t.equal(at(objectOf(answer), 'status', 'authenticated'), true)
  },
)

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true }).map((name) => join(folder, `${name}`))
  return entries.filter((path) => statSync(path).isFile())
}

void t.test('a recorded review is given only to the caller that requested it', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  const hub = await startTestHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
  const [one, other] = ['one', 'other'].map((name) =>
    hub.as('operator', { token: cloud.sandbox.token(name) }),
  )
  if (!one || !other) throw new Error('there are two')
  t.equal((await ask(one, metrics('jane'))).status, 201)
  t.equal((await other.get('/version')).status, 200)
  await cloud.unplug()
  await hub.offline()
  t.equal((await ask(one, metrics('jane'))).status, 201)
  t.equal((await ask(other, metrics('jane'))).status, 503)
  t.equal((await ask(hub.as('kubelet'), metrics('jane'))).status, 503)
})

void t.test('a malformed review is refused offline, and proves nothing', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  await ask(hub.as('kubelet'), metrics('jane'))
  await cloud.unplug()
  await hub.offline()
  const send = (body: string): Promise<Answer> =>
    hub.as('kubelet').send(`${authorization}/subjectaccessreviews`, { method: 'POST', body })
  t.equal((await send('{')).status, 400)
  t.equal((await send('{"kind":"Pod","apiVersion":"v1"}')).status, 400)
  const whole = { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1' }
  const known = { ...whole, spec: metrics('jane') }
  t.equal((await send(JSON.stringify({ ...known, status: 5 }))).status, 400)
  const deep = `${'['.repeat(9_000)}${']'.repeat(9_000)}`
  t.equal((await send(JSON.stringify(known).replace('"jane"', deep))).status, 503)
  t.equal((await send(JSON.stringify(known))).status, 201)
})

void t.test('with off no review is answered offline', async (t) => {
  const cloud = await startCloud(t)
  const flags = ['--offline-authorization=off']
  const hub = await startTestHub(t, { upstreams: [cloud], flags })
  await hub.online()
  t.equal((await ask(hub.as('kubelet'), metrics('jane'))).status, 201)
  t.equal(await hub.metric('nodehub_recorded_total{kind="review"}'), 0)
  await cloud.unplug()
  await hub.offline()
  t.equal((await ask(hub.as('kubelet'), metrics('jane'))).status, 503)
})

const reads = (...resources: readonly string[]) => ({
  verbs: ['get', 'list', 'watch'],
  apiGroups: [''],
  resources,
})

const account = [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }]
const binding = bindingTo('readers', { kind: 'Role', name: 'reader' }, account, 'default')

/** Resolves when the hub watches Roles, ClusterRoles and the bindings of both. */
const arePoliciesWatched = ({ sandbox }: CloudServer): Promise<void> =>
  sandbox.untilWatches(4, ({ path }) => path.includes('/rbac.authorization.k8s.io/'))

/** A hub with `rbac`, a pod's client with the token of an account, and the policies about it. */
async function withPolicies(t: Parameters<typeof startCloud>[0]) {
  const cloud = await startCloud(t)
  const { sandbox } = cloud
  defineRbacKinds(sandbox)
  sandbox.create(serviceAccounts, { metadata: { name: 'robot', namespace: 'default' } })
  for (const name of ['a', 'b']) {
    sandbox.create(configMaps, { metadata: { name, namespace: 'default' } })
  }
  createPolicies(sandbox, roleOf('reader', [reads('configmaps')], 'default'), binding)
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--offline-authorization=rbac', '--cache-components=*'],
  })
  await hub.online()
  const token = await cloud.accountToken('robot')
  await arePoliciesWatched(cloud)
  return { cloud, hub, robot: () => hub.as('robot', { token }) }
}

const configMap = '/api/v1/namespaces/default/configmaps/a'
const secrets = '/api/v1/namespaces/default/secrets'

void t.test('with rbac the cluster’s policies decide about what is cached', async (t) => {
  const { cloud, hub, robot } = await withPolicies(t)
  for (const path of [configMap, secrets, '/version']) {
    t.equal((await robot().get(path)).status, 200, path)
  }
  await cutOff(cloud, hub)

  await t.test('requests that they allow are answered', async (t) => {
    const answer = await robot().get(configMap)
    t.equal(answer.status, 200)
    t.equal(await hub.metric(decisions('request', 'allowed')), 1)
  })

  await t.test('requests that they do not allow are refused as by an API server', async (t) => {
    const answer = await robot().get(secrets)
    t.equal(answer.status, 403)
    t.match(objectOf(answer), {
      reason: 'Forbidden',
      message:
        'secrets is forbidden: User "system:serviceaccount:default:robot" cannot list resource "secrets" in API group "" in the namespace "default"',
    })
    t.equal((await robot().get('/version')).status, 403)
    t.equal(await hub.metric(decisions('request', 'denied')), 2)
  })

  await t.test('the node is given what it was given before', async (t) => {
    t.equal((await hub.as('kubelet').get('/api/v1/nodes/edge-1')).status, 503, 'never read')
    t.equal(await hub.metric(decisions('request', 'denied')), 2)
  })
})

void t.test('with rbac reviews are answered by the policies', async (t) => {
  const { cloud, hub, robot } = await withPolicies(t)
  const user = 'system:serviceaccount:default:robot'
  const may = (resource: string, namespace = 'default'): JsonObject => ({
    user,
    resourceAttributes: { verb: 'get', resource, namespace, name: 'a' },
  })
  t.equal((await robot().get(configMap)).status, 200, 'its token is known')
  // The API server in memory allows everything.
  t.equal(at(objectOf(await ask(hub.as('kubelet'), may('secrets'))), 'status', 'allowed'), true)
  await cutOff(cloud, hub)
  const allowed = async (spec: JsonObject): Promise<unknown> => {
    const answer = await ask(hub.as('kubelet'), spec)
    t.equal(answer.status, 201)
    t.match(answer.headers.age, /^\d+$/)
    return at(objectOf(answer), 'status', 'allowed')
  }
  t.equal(await allowed(may('configmaps')), true, 'never reviewed before')
  t.equal(await allowed(may('configmaps', 'other')), false)
  t.equal(await allowed(may('secrets')), false, 'the policies are newer than the last answer')
  t.equal(await allowed({ ...may('secrets'), groups: ['system:masters'] }), true)
  t.equal((await ask(robot(), may('configmaps'))).status, 403, 'it may not ask')
  const node = { user: 'system:node:edge-2', groups: ['system:nodes'] }
  const unknown = { ...may('configmaps'), condition: 'at night' }
  t.equal((await ask(hub.as('kubelet'), unknown)).status, 503, 'a part of it is not known')
  const another = {
    ...node,
    resourceAttributes: { verb: 'get', resource: 'secrets', namespace: 'a', name: 'b' },
  }
  t.equal((await ask(hub.as('kubelet'), another)).status, 503, 'another node’s pods are not known')
})

void t.test('with rbac a permission withdrawn online is gone offline', async (t) => {
  const { cloud, hub, robot } = await withPolicies(t)
  t.equal((await robot().get(configMap)).status, 200)
  cloud.sandbox.delete(policyResource('RoleBinding'), 'readers', 'default')
  const kind = 'nodehub_recorded_total{kind="watch"}'
  await until('the recorded deletion', async () => (await hub.metric(kind)) > 0)
  await cloud.unplug()
  await hub.offline()
  t.equal((await robot().get(configMap)).status, 403)
})

void t.test('with rbac policies that API servers no longer show decide nothing', async (t) => {
  const { cloud, hub, robot } = await withPolicies(t)
  t.equal((await robot().get(configMap)).status, 200)
  const isPolicies = (group?: string): boolean => group === 'rbac.authorization.k8s.io'
  cloud.sandbox.authorize(({ group }) => !isPolicies(group))
  await hub.restart()
  await hub.online()
  await hub.logged('--offline-authorization=rbac cannot read')
  await cloud.unplug()
  await hub.offline()
  t.equal((await robot().get(configMap)).status, 503)
  await hub.restart()
  await hub.offline()
  t.equal((await robot().get(configMap)).status, 503, 'nor after a restart')
  cloud.sandbox.authorize(() => true)
  await cloud.plug()
  await hub.online()
  await until('policies that are shown again', async () => {
    const { body } = await hub.ops.get('/readyz?verbose')
    return !body.toString().includes('--offline-authorization')
  })
  await arePoliciesWatched(cloud)
  await cloud.unplug()
  await hub.offline()
  t.equal((await robot().get(configMap)).status, 200)
})

void t.test('with rbac nothing is allowed by policies that were never read', async (t) => {
  const cloud = await startCloud(t, {
    authorizer: ({ group }) => group !== 'rbac.authorization.k8s.io',
  })
  defineRbacKinds(cloud.sandbox)
  cloud.sandbox.create(configMaps, { metadata: { name: 'a', namespace: 'default' } })
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--offline-authorization=rbac', '--cache-components=*'],
  })
  await hub.online()
  const token = cloud.sandbox.token('jane')
  const jane = (): Client => hub.as('kubectl', { token })
  t.equal((await jane().get(configMap)).status, 200)
  t.equal((await hub.as('kubelet').get(configMap)).status, 200)
  t.equal((await ask(hub.as('kubelet'), metrics('jane'))).status, 201)
  await hub.logged('--offline-authorization=rbac cannot read')
  const { body } = await hub.ops.get('/readyz?verbose')
  t.match(
    body.toString(),
    /\[ \]--offline-authorization=rbac cannot read roles\.rbac\.authorization\.k8s\.io \(403\)/,
  )
  await cloud.unplug()
  await hub.offline()
  const refused = await jane().get(configMap)
  t.equal(refused.status, 503)
  t.match(objectOf(refused), { message: /it is not known whether this is allowed/ })
  t.equal(await hub.metric(decisions('request', 'unknown')), 1)
  t.equal((await hub.as('kubelet').get(configMap)).status, 200, 'the node reads what it read')
  t.equal((await ask(hub.as('kubelet'), metrics('jane'))).status, 201, 'as it was last answered')
})
