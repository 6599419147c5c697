import t from 'tap'
import { readFileSync } from 'node:fs'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { at, objectOf, type Answer, type Client } from '../kit/client.ts'
import {
  filesIn,
  onlineNode,
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
  type TestHub,
} from '../kit/hub.ts'

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
        const answer = await ask(kubelet(), metrics(user))
        t.equal(answer.status, 201, user)
        t.match(objectOf(answer), { kind: 'SubjectAccessReview', spec: { user } })
        t.equal(at(objectOf(answer), 'status', 'allowed') ?? false, allowed, user)
        t.match(answer.headers.age, /^\d+$/)
      }
      const self = await askOfSelf(kubelet(), { verb: 'list', resource: 'pods' })
      t.equal(at(objectOf(self), 'status', 'allowed'), true)
    })

    await t.test('a status that the question is sent with is no answer', async (t) => {
      const status = { allowed: true, reason: 'I say so', evaluationError: 'none' }
      t.equal((await ask(kubelet(), metrics('mallory'), status)).status, 503)
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
    })
  })
}

void t.test(
  'made-up tokens, however many the kubelet asks about, do not make it forget a genuine one',
  async (t) => {
    const { cloud, hub } = await onlineNode(t)
    const kubelet = hub.as('kubelet')
    const token = cloud.sandbox.token('prometheus')
    await hub.online()
    await review(kubelet, token)
    const recorded = (): Promise<number> => hub.metric('nodehub_recorded_total{kind="review"}')
    const before = await recorded()
    for (let first = 0; first < 512; first += 64) {
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

void t.test('a recorded review is given only to the caller that requested it', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  const hub = await startTestHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
  const [one, other] = ['one', 'other'].map((name) =>
    hub.as('operator', { token: cloud.sandbox.token(name) }),
  )
  if (!one || !other) throw new Error('there are two')
  t.equal((await ask(one, metrics('jane'))).status, 201)
  t.equal((await other.get('/version')).status, 200)
  await goOffline(cloud, hub)
  t.equal((await ask(one, metrics('jane'))).status, 201)
  t.equal((await ask(other, metrics('jane'))).status, 503)
  t.equal((await ask(hub.as('kubelet'), metrics('jane'))).status, 503)
})

void t.test('a malformed review is refused offline, and proves nothing', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  await ask(hub.as('kubelet'), metrics('jane'))
  await goOffline(cloud, hub)
  const send = (body: string): Promise<Answer> =>
    hub.as('kubelet').send(`${authorization}/subjectaccessreviews`, { method: 'POST', body })
  t.equal((await send('{')).status, 400)
  t.equal((await send('{"kind":"Pod","apiVersion":"v1"}')).status, 400)
  const whole = { kind: 'SubjectAccessReview', apiVersion: 'authorization.k8s.io/v1' }
  const known = { ...whole, metadata: {}, spec: metrics('jane'), status: {} }
  const deep = `${'['.repeat(9_000)}${']'.repeat(9_000)}`
  t.equal((await send(JSON.stringify(known).replace('"jane"', deep))).status, 503)
  t.equal((await send(JSON.stringify(known))).status, 201)
})
