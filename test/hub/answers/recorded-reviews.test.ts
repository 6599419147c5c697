import t from 'tap'
import { mock } from 'node:test'
import { join } from 'node:path'
import { storedKey } from '../../../src/base/stored-key.ts'
import type { Review } from '../../../src/api/codec/review.ts'
import { tokenHolder, unprovenIdentity } from '../../../src/api/request/identity.ts'
import type { Exchange } from '../../../src/http/exchange/exchange.ts'
import {
  longestStatus,
  mostRecordedReviews,
  RecordedReviews,
} from '../../../src/hub/answers/recorded-reviews.ts'
import { LogStore } from '../../../src/hub/store/log/log-store.ts'
import { openStore } from '../../../src/hub/store/log/open.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import { until } from '../../kit/until.ts'

const url = '/apis/authorization.k8s.io/v1/subjectaccessreviews'

async function recorded(t: {
  testdir(): string
  teardown(act: () => Promise<void>): void
}): Promise<RecordedReviews> {
  const directory = rootFolder(t)
  const store = await openStore({
    directory: join(directory, 'cache'),
    sealingKey: storedKey(join(directory, 'store.key')),
    report: () => undefined,
  })
  t.teardown(() => store[Symbol.asyncDispose]())
  return new RecordedReviews(store, Buffer.alloc(32))
}

const review = (user: string): Review => ({
  kind: 'SubjectAccessReview',
  spec: {},
  status: {},
  bytes: Buffer.from(user),
})

const tokenReview = (token: string): Review => ({
  kind: 'TokenReview',
  spec: { token },
  status: {},
  bytes: Buffer.from(token),
})

/** Puts and reads answers of one caller. */
function callerOf(
  reviews: RecordedReviews,
  exchange: Exchange = exchangeOf(url, { method: 'POST' }),
) {
  const { info } = exchange
  if (!info.isResource) throw new Error('a review is posted to a resource')
  return {
    put: (asked: Review, allowed = true, reason?: string) =>
      reviews.put(exchange, info, asked, {
        allowed,
        ...(reason !== undefined && { reason }),
      }),
    last: (asked: Review) => reviews.last(exchange, info, asked)?.status['allowed'],
    putToken: (token: string, authenticated = true) =>
      reviews.put(exchange, info, tokenReview(token), authenticated ? { authenticated } : {}),
    lastToken: (token: string) => {
      const answer = reviews.last(exchange, info, tokenReview(token))
      return answer && answer.status['authenticated'] === true
    },
  }
}

void t.test('the last answer counts, for its review and its caller alone', async (t) => {
  const reviews = await recorded(t)
  const caller = callerOf(reviews)
  await caller.put(review('a'))
  t.equal(caller.last(review('a')), true)
  t.equal(caller.last(review('b')), undefined)
  t.equal(caller.last({ ...review('a'), kind: 'LocalSubjectAccessReview' }), undefined)
  await caller.put(review('a'), false)
  t.equal(caller.last(review('a')), false)
  await caller.put(review('a'))
  await caller.put(review('a'), false, 'x'.repeat(longestStatus))
  t.equal(caller.last(review('a')), undefined, 'not the yes before a no that is too long')
  const unproven = { ...exchangeOf(url, { method: 'POST' }), identity: unprovenIdentity }
  const nobody = callerOf(reviews, unproven)
  t.equal(nobody.put(review('b')), undefined)
  t.equal(nobody.last(review('a')), undefined)
})

void t.test('of many answers of one caller the oldest make room', async (t) => {
  const reviews = await recorded(t)
  const caller = callerOf(reviews)
  const other = callerOf(reviews, {
    ...exchangeOf(url, { method: 'POST' }),
    identity: tokenHolder('other'),
  })
  await other.put(review('user 0'))
  const users = Array.from({ length: mostRecordedReviews }, (_, at) => `user ${at}`)
  await Promise.all(users.map(async (user) => caller.put(review(user))))
  const known = (): number => users.filter((user) => caller.last(review(user))).length
  t.equal(known(), mostRecordedReviews)
  await caller.put(review('one more'))
  await until('room', () => known() < mostRecordedReviews)
  t.equal(caller.last(review('one more')), true)
  t.ok(known() >= mostRecordedReviews / 2, `${known()} are left`)
  t.equal(other.last(review('user 0')), true, 'not those of others')
})

void t.test('new answers do not list the ones before', async (t) => {
  const listed = mock.method(LogStore.prototype, 'partitions')
  t.teardown(() => listed.mock.restore())
  const caller = callerOf(await recorded(t))
  for (const user of ['a', 'b', 'c', 'd']) await caller.put(review(user))
  t.equal(listed.mock.callCount(), 1)
})

void t.test('a long status is not recorded', async (t) => {
  const caller = callerOf(await recorded(t))
  t.equal(caller.put(review('a'), true, 'x'.repeat(20_000)), undefined)
})

void t.test('a refused token is recorded only if it was accepted before', async (t) => {
  const caller = callerOf(await recorded(t))
  t.equal(caller.putToken('made up', false), undefined, 'no commit')
  t.equal(caller.lastToken('made up'), undefined)
  await caller.putToken('revoked')
  await caller.putToken('revoked', false)
  t.equal(caller.lastToken('revoked'), false)
  await caller.putToken('revoked')
  t.equal(caller.lastToken('revoked'), true, 'accepted again')
})

void t.test('an expired token is unknown', async (t) => {
  const caller = callerOf(await recorded(t))
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (exp?: number): string => `${part({ alg: 'none' })}.${part({ exp })}.c2ln`
  const now = Math.floor(Date.now() / 1000)
  for (const [exp, known] of [
    [now + 3600, true],
    [now - 1, undefined],
    [undefined, true],
  ] as const) {
    await caller.putToken(token(exp))
    t.equal(caller.lastToken(token(exp)), known, `${exp}`)
  }
})
