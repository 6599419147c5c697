import { join } from 'node:path'
import { mock } from 'node:test'
import t from 'tap'
import { isExpectedFault } from '../../../src/base/expected-fault.ts'
import { onAbort } from '../../../src/base/abort.ts'
import { turn } from '../../../src/base/clock.ts'
import type { BytesReply, Exchange } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { tokenHolder } from '../../../src/api/request/identity.ts'
import { ClusterKeys } from '../../../src/hub/identity/cluster-keys.ts'
import {
  keysPatienceMs,
  mostFetches,
  withAuthenticationOutcome,
  withKnownAccount,
} from '../../../src/hub/pipeline/authentication-outcome.ts'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { issuer, Tokens } from '../../../src/sandbox/tokens.ts'
import { claimOf, emptyReply, exchangeOf } from '../../kit/exchange.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

const answer = (body: string, status = 200): BytesReply => ({
  kind: 'bytes',
  from: 'cloud',
  status,
  headers: new HeaderList(['Audit-Id', 'an-id']),
  source: (sink) => {
    if (sink.write(Buffer.from(body))) sink.end()
    return () => undefined
  },
})

const pod = '/api/v1/namespaces/default/pods/a'

/** Sends a request whose answers are `reply`, and returns what its claim has heard. */
async function heard(reply: BytesReply, url: string): Promise<readonly number[]> {
  const statuses: number[] = []
  const claim = claimOf({
    onUpstreamAnswer: ({ status }) => {
      statuses.push(status)
      return undefined
    },
  })
  const forward = withAuthenticationOutcome(
    async () => reply,
    async () => undefined,
  )
  const passed = await forward({ ...exchangeOf(url), claim }, { onOutcome: () => undefined })
  t.equal(passed.status, reply.status)
  return statuses
}

void t.test('an answer is passed on once its proof of the token is on the disk', async (t) => {
  const written = Promise.withResolvers<void>()
  const claim = claimOf({ onUpstreamAnswer: () => written.promise })
  const forward = withAuthenticationOutcome(
    async () => answer('{}'),
    async () => undefined,
  )
  let isAnswered = false
  const reply = forward({ ...exchangeOf(pod), claim }, { onOutcome: () => undefined }).then(
    () => (isAnswered = true),
  )
  for (let turns = 0; turns < 5; turns++) await turn()
  t.equal(isAnswered, false)
  written.resolve()
  t.equal(await reply, true)
})

void t.test(
  'a 401 of a pod or kubelet that the API server relays says nothing of the token',
  async (t) => {
    for (const url of [`${pod}/proxy/metrics`, `${pod}/log`])
      t.strictSame(await heard(answer('{}', 401), url), [])
    t.strictSame(await heard(answer('{}', 401), pod), [401])
  },
)

void t.test('a 401 of an API server that is starting says nothing of the token', async (t) => {
  t.strictSame(await heard({ ...answer('{}', 401), isStarting: true }, pod), [])
})

const tokens = new Tokens()
const keyId = (tokens.keySet['keys'] as readonly { readonly kid: string }[])[0]?.kid ?? ''

const discovery = '/.well-known/openid-configuration'
const jwks = '/openid/v1/jwks'

const publishing = {
  [discovery]: answer(JSON.stringify({ issuer })),
  [jwks]: answer(JSON.stringify(tokens.keySet)),
}

const traffic = createMetrics().traffic({
  verb: 'list',
  resource: 'pods',
  subresources: '',
  client: '',
})
const follower = { sent: () => undefined, received: () => undefined }

interface Circumstances {
  readonly online?: boolean
  readonly upgrade?: boolean
  readonly isSilent?: boolean
}

/** The layer above API servers that answer each path with what `answers` says. */
function layerOver(
  t: Teardown,
  answers: Readonly<Record<string, BytesReply>>,
  { online = true, upgrade = false, isSilent = false }: Circumstances = {},
) {
  const asked: Exchange[] = []
  const failures: unknown[] = []
  const keys = new ClusterKeys(join(rootFolder(t), 'keys.json'))
  const layer = withKnownAccount({
    keys,
    cloud: { online, onlineKnown: () => Promise.resolve() },
    forward: async (exchange) => {
      asked.push(exchange)
      if (isSilent)
        await new Promise((_, reject) => {
          onAbort(exchange.signal, () => reject(exchange.signal.reason as Error))
        })
      return answers[exchange.url] ?? answer('{}', 404)
    },
    onLearned: () => undefined,
    onFailure: (cause) => failures.push(cause),
  })
  const passed: Exchange[] = []
  const handler = layer(async (exchange) => {
    passed.push(exchange)
    return emptyReply
  })
  const sendAs = async (key: string | undefined, token: string) => {
    const claim = claimOf({
      keyId: key,
      verifiedIdentity: async () => tokenHolder(keys.has(keyId) ? 'verified' : 'alone'),
    })
    const headers = { Authorization: `Bearer ${token}`, 'Impersonate-User': 'x' }
    const exchange = exchangeOf('/api/v1/pods', { headers, upgrade })
    const identity = tokenHolder('as it came')
    await handler({ ...exchange, credential: 'caller', claim, identity, traffic, follower })
    return passed.at(-1)?.identity
  }
  const send = (key = keyId, token = 'a.b.c') => sendAs(key, token)
  /** With a token that names no service account. */
  const sendWithout = () => sendAs(undefined, 'opaque')
  const urls = (): readonly string[] => asked.map(({ url }) => url)
  return { send, sendWithout, asked, urls, keys, failures, passed }
}

void t.test('a first request waits for the keys that show whose its token is', async (t) => {
  const { send, asked, urls, keys } = layerOver(t, publishing)
  t.equal(await send(), tokenHolder('verified'))
  t.ok(keys.has(keyId))
  t.equal(await send(), tokenHolder('as it came'))
  t.strictSame(urls(), [discovery, jwks], 'they are fetched once')
  const [request] = asked
  t.equal(request?.credential, 'caller')
  t.equal(request?.headers.get('authorization'), 'Bearer a.b.c')
  t.strictSame([request?.traffic, request?.follower], [undefined, undefined], 'not the caller’s')
})

void t.test('keys that a gateway publishes are not the cluster’s', async (t) => {
  const ofGateway = (reply: BytesReply): BytesReply => ({ ...reply, headers: new HeaderList() })
  const { send, keys, failures } = layerOver(t, {
    [discovery]: ofGateway(publishing[discovery] ?? answer('')),
    [jwks]: ofGateway(publishing[jwks] ?? answer('')),
  })
  t.equal(await send(), tokenHolder('alone'))
  t.match(failures, [{ message: /not answered by an API server/ }])
  t.ok(isExpectedFault(failures[0]), 'no stack is logged')
  t.notOk(keys.has(keyId))
})

void t.test('missing or unusable keys are reported, and not fetched again at once', async (t) => {
  for (const refused of [
    answer('{}', 403),
    answer('no JSON'),
    answer('null'),
    answer('{"keys":[]}'),
    answer(' '.repeat(2 * 1024 * 1024)),
  ]) {
    const { send, asked, failures } = layerOver(t, { ...publishing, [jwks]: refused })
    t.equal(await send(), tokenHolder('alone'))
    t.equal(failures.length, 1)
    t.ok(isExpectedFault(failures[0]), 'no stack is logged')
    await send()
    t.equal(asked.length, 2)
  }
})

void t.test('a token that API servers refuse keeps no other from the keys', async (t) => {
  const answers: Record<string, BytesReply> = { ...publishing, [discovery]: answer('{}', 401) }
  const { send } = layerOver(t, answers)
  t.equal(await send('invented', 'x.y.z'), tokenHolder('alone'))
  answers[discovery] = answer(JSON.stringify({ issuer }))
  t.equal(await send(), tokenHolder('verified'))
})

void t.test('no keys are fetched offline, for an upgrade, or for another token', async (t) => {
  for (const circumstances of [{ online: false }, { upgrade: true }]) {
    const { send, asked } = layerOver(t, publishing, circumstances)
    t.equal(await send(), tokenHolder('as it came'))
    t.strictSame(asked, [])
  }
  const { sendWithout, asked } = layerOver(t, publishing)
  t.equal(await sendWithout(), tokenHolder('as it came'))
  t.strictSame(asked, [])
})

void t.test('a silent API server delays the request only for a while', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { send, passed } = layerOver(t, publishing, { isSilent: true })
  const sent = send()
  for (let turns = 0; turns < 5; turns++) await turn()
  mock.timers.tick(keysPatienceMs - 1)
  for (let turns = 0; turns < 5; turns++) await turn()
  t.equal(passed.length, 0)
  mock.timers.tick(1)
  t.equal(await sent, tokenHolder('alone'))
})

void t.test('only so many fetches run at a time, and other requests go on without', async (t) => {
  const answers: Record<string, BytesReply> = { [discovery]: answer('{}', 401) }
  const { send, asked } = layerOver(t, answers)
  await Promise.all(Array.from({ length: 2 * mostFetches }, () => send('invented')))
  t.ok(asked.length <= mostFetches + 1, `${asked.length}`)
})
