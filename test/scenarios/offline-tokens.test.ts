import t from 'tap'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import { serviceAccounts } from '../kit/cloud.ts'
import {
  filesIn,
  onlineNode,
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
} from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { portOf } from '../kit/wire/listening.ts'

const tokens = '/api/v1/namespaces/default/serviceaccounts/robot/token'

interface Wish {
  readonly audiences?: readonly string[]
  readonly seconds?: number
  readonly pod?: string
}

const request = ({ audiences = ['vault'], seconds = 3607, pod }: Wish = {}): JsonObject => ({
  kind: 'TokenRequest',
  apiVersion: 'authentication.k8s.io/v1',
  metadata: {},
  spec: {
    audiences,
    expirationSeconds: seconds,
    ...(pod !== undefined && {
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'a', uid: pod },
    }),
  },
})

const ask = (client: Client, wish?: Wish, path = tokens) =>
  client.send(path, { method: 'POST', body: request(wish) })

const uidOf = ({ sandbox }: CloudServer, pod: string): string =>
  sandbox.get({ group: '', version: 'v1', resource: 'pods' }, pod, 'default')?.metadata.uid ?? ''

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`the last token is given again while the cloud is gone: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    cloud.addPods('a')
    cloud.sandbox.create(serviceAccounts, { metadata: { name: 'robot', namespace: 'default' } })
    const kubelet = (): Client => hub.as('kubelet', { encoding })
    const wish = { pod: uidOf(cloud, 'a') }
    await ask(kubelet(), wish)
    const last = await ask(kubelet(), wish)
    t.equal(last.status, 201)
    await cloud.unplug()
    await hub.restart()
    await hub.offline()

    await t.test('in the bytes it came in', async (t) => {
      const again = await ask(kubelet(), wish)
      t.equal(again.status, 201)
      t.strictSame(again.body, last.body)
      t.equal(again.headers['content-type'], last.headers['content-type'])
      t.match(again.headers.age, /^\d+$/)
    })

    await t.test('for the same and nothing else', async (t) => {
      const others: readonly [what: string, Wish, string?][] = [
        ['another audience', { ...wish, audiences: ['else'] }],
        ['another life', { ...wish, seconds: 7200 }],
        ['another pod', { pod: 'f3' }],
        ['no pod', {}],
        ['another account', wish, tokens.replace('robot', 'other')],
        ['another namespace', wish, tokens.replace('default', 'other')],
      ]
      for (const [what, other, path] of others) {
        const answer = await ask(kubelet(), other, path)
        t.equal(answer.status, 503, what)
        t.equal(answer.headers['retry-after'], undefined)
      }
    })

    await t.test('without a trace in metrics, log or files', async (t) => {
      const token = at(objectOf(last), 'status', 'token') as string
      const { body } = await hub.ops.get('/metrics')
      t.notOk(body.includes(token))
      t.notOk(hub.lines.some((line) => line.includes(token)))
      for (const file of filesIn(hub.rootDir)) t.notOk(readFileSync(file).includes(token), file)
    })
  })
}

void t.test('a token is given only to the caller that requested it', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.sandbox.create(serviceAccounts, { metadata: { name: 'robot', namespace: 'default' } })
  const flags = ['--cache-components=*']
  const hub = await startTestHub(t, { upstreams: [cloud], flags })
  const somebody = hub.as('vault', { token: cloud.sandbox.token('somebody') })
  const other = hub.as('vault', { token: cloud.sandbox.token('another') })
  const given = await ask(somebody)
  t.equal(given.status, 201)
  await other.get('/version')
  await goOffline(cloud, hub)
  t.strictSame((await ask(somebody)).body, given.body)
  t.equal((await ask(other)).status, 503)
  t.equal((await ask(hub.as('kubelet'))).status, 503)
})

void t.test('a long request passes, and its answer is not kept', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  cloud.sandbox.create(serviceAccounts, { metadata: { name: 'robot', namespace: 'default' } })
  const wish = { audiences: ['x'.repeat(70_000)] }
  t.equal((await ask(hub.as('kubelet'), wish)).status, 201)
  await goOffline(cloud, hub)
  t.equal((await ask(hub.as('kubelet'), wish)).status, 503)
})

/** An API server that gives out what the test sets. */
async function issuer(t: Teardown, answer: () => JsonObject): Promise<{ url: string } & Server> {
  const server = createServer((asked, response) => {
    if (asked.method !== 'POST') return void response.end('ok')
    asked.resume().on('end', () => {
      response.writeHead(201, { 'Content-Type': 'application/json', 'Audit-Id': '1' })
      response.end(`${JSON.stringify(answer())}\n`)
    })
  })
  const port = await portOf(t, server)
  return Object.assign(server, { url: `http://127.0.0.1:${port}` })
}

const day = 86_400
const part = (value: JsonObject): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * An answer whose token begins and ends so many seconds from now, and which itself tells another
 * end.
 */
function answerOf(begins: number, ends: number, told: number): JsonObject {
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { iat: seconds + begins, nbf: seconds + begins, exp: seconds + ends }
  return {
    ...request(),
    status: {
      token: `${part({ alg: 'RS256' })}.${part(claims)}.c2lnbmF0dXJl`,
      expirationTimestamp: new Date((seconds + told) * 1000).toISOString().replace(/\.\d+/, ''),
    },
  }
}

const lives: readonly [what: string, answer: JsonObject, status: number][] = [
  ['it has expired, whatever the answer said', answerOf(-2 * day, -1, day), 503],
  ['it lives on after the hour that the answer spoke of', answerOf(-day, 300 * day, -day), 201],
  ['the clock of the node is behind', answerOf(9000 * day, 9001 * day, 9001 * day), 201],
  ['it is no token that says how long it lives', { ...request(), status: { token: 'a' } }, 503],
  ['there is none', { ...request(), status: {} }, 503],
  ['the answer is something else', { kind: 'Node', apiVersion: 'v1', metadata: {} }, 503],
]

for (const [what, answer, status] of lives) {
  void t.test(`the lifetime of a recorded token: ${what}`, async (t) => {
    const cloud = await issuer(t, () => answer)
    const hub = await startTestHub(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet')
    t.equal((await ask(kubelet)).status, 201)
    cloud.close()
    cloud.closeAllConnections()
    await hub.offline()
    t.equal((await ask(kubelet)).status, status)
  })
}

void t.test(
  'a token request that the cloud took and never answered is answered all the same',
  async (t) => {
    let gone = false
    const cloud = await issuer(t, () => answerOf(-day, day, day))
    // Nothing is changed in the cloud by a token that never arrived.
    cloud.prependListener('request', ({ socket }) => {
      if (gone) socket.destroy()
    })
    const interval = {
      intervalMs: 3_600_000,
      timeoutMs: 2_000,
      failedRetry: 1,
      healthyThreshold: 1,
    }
    const hub = await startTestHub(t, { upstreams: [cloud], config: { heartbeat: interval } })
    const kubelet = hub.as('kubelet')
    const given = await ask(kubelet)
    t.equal(given.status, 201)
    gone = true
    const again = await ask(kubelet)
    t.equal(again.status, 201)
    t.strictSame(again.body, given.body)
    t.equal((await ask(kubelet, { audiences: ['else'] })).status, 503)
  },
)
