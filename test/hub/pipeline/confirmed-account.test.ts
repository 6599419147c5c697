import t from 'tap'
import { mock } from 'node:test'
import { onAbort } from '../../../src/base/abort.ts'
import { turn } from '../../../src/base/clock.ts'
import type { BytesReply, Exchange, User } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import {
  mostReviews,
  reviewTimeoutMs,
  withConfirmedAccount,
} from '../../../src/hub/pipeline/authentication-outcome.ts'
import { tokenHolder } from '../../../src/api/request/identity.ts'
import { claimOf, exchangeOf } from '../../kit/exchange.ts'

const answer = (status: number, body = '{}', audited = true): BytesReply => ({
  kind: 'bytes',
  from: 'cloud',
  status,
  headers: new HeaderList(audited ? ['Audit-Id', 'an-id'] : []),
  source: (sink) => {
    if (sink.write(Buffer.from(body))) sink.end()
    return () => undefined
  },
})

/** Rejects when the exchange is given up. */
const cut = ({ signal }: Exchange): Promise<never> =>
  new Promise((_, reject) => void onAbort(signal, () => reject(signal.reason as Error)))

const user: User = { username: 'system:serviceaccount:default:reader', uid: 'u-1' }
const saying = (userInfo: object): string => JSON.stringify({ status: { userInfo } })
const stable = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const beta = '/apis/authentication.k8s.io/v1beta1/selfsubjectreviews'

/**
 * Sends a request through the layer; API servers answer reviews with what `answers` says of their
 * paths.
 */
async function send(
  answers: Readonly<Record<string, BytesReply>>,
  {
    online = true,
    upgrade = false,
    isOpen = true,
    isSilent = false,
    learned = () => Promise.resolve(),
  } = {},
) {
  const asked: Exchange[] = []
  const said: (User | undefined)[] = []
  const claim = claimOf({
    holds: () => true,
    keyId: 'a-key',
    ...(isOpen && {
      confirm: async (ask) => {
        said.push(await ask())
        return tokenHolder('confirmed')
      },
    }),
  })
  const heeding = {
    forward: async (exchange: Exchange): Promise<BytesReply> => {
      asked.push(exchange)
      if (isSilent) await cut(exchange)
      return answers[exchange.url] ?? answer(404)
    },
    keysFetched: learned,
  }
  const cloud = { online, onlineKnown: () => Promise.resolve() }
  const headers = { Authorization: 'Bearer a.b.c', 'Impersonate-User': 'x' }
  const exchange: Exchange = {
    ...exchangeOf('/api/v1/pods', { headers }),
    identity: tokenHolder('unconfirmed'),
    credential: 'caller',
    claim,
    upgrade,
  }
  let passed: Exchange | undefined
  const layer = withConfirmedAccount(heeding, { cloud, onOutcome: () => undefined })
  await layer(async (next) => {
    passed = next
    return answer(200)
  })(exchange)
  return { asked, said, identity: passed?.identity }
}

void t.test('a caller is identified before its request goes on', async (t) => {
  const { asked, said, identity } = await send({ [stable]: answer(201, saying(user)) })
  t.strictSame(said, [user])
  t.equal(identity, tokenHolder('confirmed'))
  const [review, ...more] = asked
  t.strictSame(more, [])
  t.equal(review?.method, 'POST')
  t.equal(review?.credential, 'caller')
  t.equal(review?.headers.get('authorization'), 'Bearer a.b.c')
  t.notOk(review?.headers.get('impersonate-user'), 'whose the token is, not whom it speaks for')
  t.match(JSON.parse(String(review?.content)), {
    kind: 'SelfSubjectReview',
    apiVersion: 'authentication.k8s.io/v1',
  })
})

void t.test('an API server with only the beta review is sent that', async (t) => {
  const { asked, said } = await send({ [beta]: answer(201, saying(user)) })
  t.strictSame(said, [user])
  t.strictSame(
    asked.map(({ url }) => url),
    [stable, beta],
  )
})

void t.test('without a review, the request waits for keys that are being fetched', async (t) => {
  for (const answers of [{}, { [stable]: answer(403) }]) {
    let learned = false
    const { said } = await send(answers, {
      learned: async () => {
        learned = true
      },
    })
    t.strictSame(said, [undefined])
    t.equal(learned, true)
  }
})

void t.test('only a review that an API server answers identifies the caller', async (t) => {
  for (const reply of [
    answer(401),
    answer(500),
    answer(201, 'no JSON'),
    answer(201, 'null'),
    answer(201, saying(user), false),
    answer(201, ' '.repeat(1024 * 1024)),
  ])
    t.strictSame((await send({ [stable]: reply })).said, [undefined])
  const nameless = await send({ [stable]: answer(201, '{"status":{}}') })
  t.strictSame(nameless.said, [{ username: '', uid: '' }])
})

void t.test('no review is sent offline, for an upgrade, or where it is known', async (t) => {
  for (const circumstances of [{ online: false }, { upgrade: true }, { isOpen: false }]) {
    const { asked, identity } = await send({}, circumstances)
    t.strictSame(asked, [])
    t.equal(identity, tokenHolder('unconfirmed'))
  }
})

void t.test('a silent API server delays the request only for a while', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  let isOver = false
  const sent = send({}, { isSilent: true }).finally(() => (isOver = true))
  await turn()
  mock.timers.tick(reviewTimeoutMs - 1)
  await turn()
  t.notOk(isOver)
  mock.timers.tick(1)
  const { asked, said } = await sent
  t.strictSame(said, [undefined])
  t.equal(asked.length, 1, 'and the beta is not tried')
})

void t.test('only so many tokens are reviewed at a time, and others go on without', async (t) => {
  const asked: Exchange[] = []
  const said: (User | undefined)[] = []
  const heeding = {
    forward: (exchange: Exchange): Promise<BytesReply> => {
      asked.push(exchange)
      return cut(exchange)
    },
    keysFetched: () => Promise.resolve(),
  }
  const cloud = { online: true, onlineKnown: () => Promise.resolve() }
  const layer = withConfirmedAccount(heeding, { cloud, onOutcome: () => undefined })
  const claim = claimOf({
    holds: () => true,
    keyId: 'a-key',
    confirm: async (ask) => {
      said.push(await ask())
      return tokenHolder('alone')
    },
  })
  const send = () =>
    layer(async () => answer(200))({
      ...exchangeOf('/api/v1/pods', { headers: { Authorization: 'Bearer a.b.c' } }),
      credential: 'caller',
      claim,
    })
  for (let i = 0; i < mostReviews; i++) void send().catch(() => undefined)
  await turn()
  t.equal(asked.length, mostReviews)
  await send()
  t.strictSame([asked.length, said], [mostReviews, [undefined]], 'it goes on unconfirmed')
})
