import { join } from 'node:path'
import t from 'tap'
import { isExpectedFault } from '../../../src/base/expected-fault.ts'
import type { BytesReply, Exchange, UpstreamReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { ClusterKeys } from '../../../src/hub/identity/cluster-keys.ts'
import { withAuthenticationOutcome } from '../../../src/hub/pipeline/authentication-outcome.ts'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { issuer, Tokens } from '../../../src/sandbox/tokens.ts'
import { claimOf, exchangeOf } from '../../kit/exchange.ts'
import { Condition } from '../../kit/condition.ts'
import { rootFolder } from '../../kit/root-folder.ts'

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

interface Heard {
  readonly asked: Exchange[]
  readonly heard: number[]
  readonly send: (keyId?: string, holds?: boolean, url?: string) => Promise<UpstreamReply>
  readonly keys: ClusterKeys
  /** Resolves with what came of the next try to learn. */
  readonly learned: () => Promise<unknown>
}

/**
 * A forwarder that answers each path with what `answers` says, and else with nothing special; what
 * it shows of a token is on the disk when `written` resolves.
 */
function heed(
  folder: string,
  answers: Readonly<Record<string, BytesReply>>,
  written?: Promise<void>,
): Heard {
  const asked: Exchange[] = []
  const heard: number[] = []
  const outcomes: unknown[] = []
  const condition = new Condition()
  const over = (outcome: unknown): void => {
    outcomes.push(outcome)
    condition.changed()
  }
  const keys = new ClusterKeys(join(folder, 'keys.json'))
  const { forward } = withAuthenticationOutcome(
    async (exchange) => {
      asked.push(exchange)
      return answers[exchange.url] ?? answer('{}')
    },
    { keys, onLearned: () => over('learned'), onFailure: over },
  )
  const send = (keyId?: string, holds = true, url = '/api/v1/pods'): Promise<UpstreamReply> => {
    const claim = claimOf({
      holds: () => holds,
      onUpstreamAnswer: ({ status }) => {
        heard.push(status)
        return written
      },
      keyId,
    })
    const headers = { Authorization: 'Bearer a.b.c', 'Impersonate-User': 'x' }
    const exchange = exchangeOf(url, { headers })
    return forward(
      { ...exchange, credential: 'caller', claim, traffic, follower },
      { onOutcome: () => undefined },
    )
  }
  const learned = (): Promise<unknown> => condition.seen(() => outcomes.shift())
  return { asked, heard, send, keys, learned }
}

const traffic = createMetrics().traffic({
  verb: 'list',
  resource: 'pods',
  subresources: '',
  client: '',
})
const follower = { sent: () => undefined, received: () => undefined }

const tokens = new Tokens()
const keyId = (tokens.keySet['keys'] as readonly { readonly kid: string }[])[0]?.kid ?? ''

const publishing = {
  '/.well-known/openid-configuration': answer(JSON.stringify({ issuer })),
  '/openid/v1/jwks': answer(JSON.stringify(tokens.keySet)),
}

void t.test('an answer is passed on once its proof of the token is on the disk', async (t) => {
  const written = Promise.withResolvers<void>()
  const { send } = heed(rootFolder(t), {}, written.promise)
  let isAnswered = false
  const reply = send().then(() => (isAnswered = true))
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  t.equal(isAnswered, false)
  written.resolve()
  t.equal(await reply, true)
})

void t.test(
  'a 401 of a pod or kubelet that the API server relays says nothing of the token',
  async (t) => {
    const pod = '/api/v1/namespaces/default/pods/a'
    const relayed = [`${pod}/proxy/metrics`, `${pod}/log`]
    const { send, heard } = heed(
      rootFolder(t),
      Object.fromEntries([pod, ...relayed].map((url) => [url, answer('{}', 401)])),
    )
    for (const url of relayed) t.equal((await send(undefined, true, url)).status, 401)
    t.strictSame(heard, [])
    await send(undefined, true, pod)
    t.strictSame(heard, [401])
  },
)

void t.test('a 401 of an API server that is starting says nothing of the token', async (t) => {
  const pod = '/api/v1/namespaces/default/pods/a'
  const { send, heard } = heed(rootFolder(t), { [pod]: { ...answer('{}', 401), isStarting: true } })
  t.equal((await send(undefined, true, pod)).status, 401)
  t.strictSame(heard, [])
})

void t.test('keys that a gateway publishes are not the cluster’s', async (t) => {
  const ofGateway = (reply: BytesReply): BytesReply => ({ ...reply, headers: new HeaderList() })
  const { send, keys, learned } = heed(rootFolder(t), {
    '/.well-known/openid-configuration': ofGateway(answer(JSON.stringify({ issuer }))),
    '/openid/v1/jwks': ofGateway(answer(JSON.stringify(tokens.keySet))),
  })
  await send(keyId)
  const failure = await learned()
  t.match(failure, { message: /not answered by an API server/ })
  t.ok(isExpectedFault(failure), 'no stack is logged')
  t.notOk(keys.has(keyId))
})

void t.test('a service account’s token is used to learn the keys, once', async (t) => {
  const { send, asked, keys, learned } = heed(rootFolder(t), publishing)
  await send(keyId)
  t.equal(await learned(), 'learned')
  t.ok(keys.has(keyId))
  await send(keyId)
  t.strictSame(
    asked.map(({ url }) => url),
    ['/api/v1/pods', '/.well-known/openid-configuration', '/openid/v1/jwks', '/api/v1/pods'],
  )
  const [, discovery] = asked
  t.equal(discovery?.credential, 'caller')
  t.strictSame(discovery?.headers.raw, ['Authorization', 'Bearer a.b.c', 'Accept', '*/*'])
  const [own, none] = [
    [traffic, follower],
    [undefined, undefined],
  ]
  t.strictSame(
    asked.map((each) => [each.traffic, each.follower]),
    [own, none, none, own],
    'what else comes is not counted as the caller’s',
  )
})

void t.test(
  'no keys are requested with another token, or with one that does not hold',
  async (t) => {
    const { send, asked } = heed(rootFolder(t), publishing)
    await send(undefined)
    await send(keyId, false)
    t.equal(asked.length, 2)
  },
)

void t.test(
  'missing or unusable keys are reported, and not requested with each request',
  async (t) => {
    for (const refused of [
      answer('{}', 403),
      answer('no JSON'),
      answer('null'),
      answer('{"keys":[]}'),
      answer(' '.repeat(2 * 1024 * 1024)),
    ]) {
      const { send, asked, learned } = heed(rootFolder(t), {
        ...publishing,
        '/openid/v1/jwks': refused,
      })
      await send(keyId)
      const failure = await learned()
      t.type(failure, Error)
      t.ok(isExpectedFault(failure), 'no stack is logged')
      await send(keyId)
      t.equal(asked.length, 4)
    }
  },
)
