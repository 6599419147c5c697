import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import t from 'tap'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { Claims } from '../../../src/hub/identity/claims.ts'
import { ClusterKeys, type PublishedKeys } from '../../../src/hub/identity/cluster-keys.ts'
import { TokenVerdicts } from '../../../src/hub/identity/token-verdicts.ts'
import { issuer, Tokens } from '../../../src/sandbox/tokens.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

const account = (name = 'reader', uid = 'u-1') => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: {
    name,
    namespace: 'default',
    uid,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
})

/** The token of a service account, as the cluster of `tokens` signs it. */
const tokenOf = (tokens: Tokens, seconds = 3600, audiences: readonly string[] = [], uid = 'u-1') =>
  tokens.bind({ account: account('reader', uid), audiences, expirationSeconds: seconds }).token

const published = (tokens: Tokens): PublishedKeys => ({
  issuer,
  ...(tokens.keySet as unknown as Pick<PublishedKeys, 'keys'>),
})

function hub(t: Teardown, folder: string) {
  const keys = new ClusterKeys(join(folder, 'keys.json'))
  const proofs = new TokenVerdicts(join(folder, 'proofs.json'), () => undefined)
  t.teardown(() => proofs[Symbol.asyncDispose]())
  const claims = new Claims(Buffer.from('key'), proofs, keys)
  const of = (token: string) => claims.of({ token })
  const told = async (token: string, status: number, method = 'GET', audited = true) => ({
    written: (await of(token)).onUpstreamAnswer({
      method,
      status,
      headers: new HeaderList(audited ? ['Audit-Id', 'an-id'] : []),
    }),
  })
  return {
    keys,
    of,
    told,
    holds: async (token: string) => (await of(token)).holds(),
    answered: async (...answer: Parameters<typeof told>) => (await told(...answer)).written,
    stop: () => proofs[Symbol.asyncDispose](),
  }
}

void t.test('tokens of one service account are one identity, others are others', async (t) => {
  const { of, keys } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  await keys.learn(published(tokens))
  const first = (await of(tokenOf(tokens))).identity()
  t.equal((await of(tokenOf(tokens))).identity(), first)
  t.not((await of(tokenOf(tokens, 3600, [], 'u-2'))).identity(), first, 'made again under its name')
  t.not((await of('opaque')).identity(), (await of('other')).identity())
})

void t.test('an unsigned claim makes its holder no service account', async (t) => {
  const { of, answered } = hub(t, rootFolder(t))
  const [one, other] = [tokenOf(new Tokens()), tokenOf(new Tokens())]
  for (const token of [one, other]) await answered(token, 200)
  t.match((await of(one)).identity(), /^token:/)
  t.not((await of(one)).identity(), (await of(other)).identity())
})

void t.test('keys that come meanwhile show whose token a request under way has', async (t) => {
  const { of, answered, keys } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  const claim = await of(tokenOf(tokens))
  await answered(tokenOf(tokens), 201)
  t.match(await claim.verifiedIdentity(), /^token:/, 'as far as is known')
  await keys.learn(published(tokens))
  t.equal(await claim.verifiedIdentity(), 'account:default/reader/u-1')
})

void t.test('a contradictory claim is not taken for a service account’s', async (t) => {
  const { of } = hub(t, rootFolder(t))
  const write = (claims: object): string =>
    ['{}', JSON.stringify(claims)].map((part) => Buffer.from(part).toString('base64url')).join('.')
  const own = { namespace: 'a', serviceaccount: { name: 'b', uid: 'c' } }
  const good = { sub: 'system:serviceaccount:a:b', 'kubernetes.io': own }
  t.type((await of(`${write(good)}.c2ln`)).keyId, 'string')
  for (const claims of [
    { ...good, sub: 'system:serviceaccount:a:other' },
    { ...good, sub: 'system:node:edge-1' },
    { sub: good.sub },
    { ...good, 'kubernetes.io': { ...own, serviceaccount: { name: 'b' } } },
    { ...good, 'kubernetes.io': { ...own, namespace: ['a'] } },
    { ...good, 'kubernetes.io': { ...own, serviceaccount: { name: 'b', uid: '\ud800' } } },
    [good],
    null as unknown as object,
  ])
    t.equal((await of(`${write(claims)}.c2ln`)).keyId, undefined, JSON.stringify(claims))
})

void t.test('a token that is neither accepted nor signed does not hold', async (t) => {
  const { holds } = hub(t, rootFolder(t))
  for (const token of ['opaque', 'a.b.c', tokenOf(new Tokens())]) t.equal(await holds(token), false)
})

type Answered = readonly [status: number, method?: string, audited?: boolean]

/** What an API server has answered to a token, and whether the token holds then. */
const answers: Readonly<Record<string, readonly [holds: boolean, ...Answered[]]>> = {
  ...Object.fromEntries(
    [200, 201, 403, 404].map((status) => [`${status} accepts it`, [true, [status]] as const]),
  ),
  'an upgrade accepts it': [true, [101, 'POST', false]],
  ...Object.fromEntries(
    [400, 401, 408, 413, 429, 500, 503, 504].map((status) => [
      `${status} may be from before authentication`,
      [false, [status]] as const,
    ]),
  ),
  'a preflight proves nothing': [false, [204, 'OPTIONS']],
  'a gateway proves nothing': [false, [200, 'GET', false]],
  'a gateway revokes nothing': [true, [200], [401, 'GET', false]],
  'a later 401 revokes it': [false, [200], [401]],
  'a later acceptance restores it': [true, [200], [401], [200]],
}

for (const [what, [holding, ...answered]] of Object.entries(answers))
  void t.test(`what an answer of an API server says of a token: ${what}`, async (t) => {
    const { holds, answered: answers } = hub(t, rootFolder(t))
    const tokens = ['opaque', tokenOf(new Tokens())]
    for (const token of tokens) {
      for (const answer of answered) await answers(token, ...answer)
      t.equal(await holds(token), holding)
    }
  })

void t.test('refused or made-up tokens never displace an acceptance', async (t) => {
  const folder = rootFolder(t)
  const first = hub(t, folder)
  await first.answered('genuine', 200)
  for (let i = 0; i < 5_000; i++) {
    await first.told(`once-${i}`, 200)
    await first.told(`once-${i}`, 401)
    await first.told(`never-${i}`, 401)
  }
  t.equal(await first.holds('genuine'), true)
  t.equal(await first.holds('once-4999'), false)
  await first.stop()
  const next = hub(t, folder)
  t.equal(await next.holds('genuine'), true)
  t.equal(await next.holds('once-4999'), false)
})

void t.test(
  'a token is verified once for all waiting requests, and anew with new keys',
  async (t) => {
    const { keys, of } = hub(t, rootFolder(t))
    const tokens = new Tokens()
    await keys.learn(published(tokens))
    const verified = mock.method(keys, 'signature')
    const token = tokenOf(tokens)
    const [first, second] = await Promise.all([of(token), of(token)])
    t.match(first.identity(), /^account:/)
    t.equal(second.identity(), first.identity())
    t.equal(verified.mock.callCount(), 1)
    await keys.learn(published(new Tokens()))
    t.equal(first.holds(), false, 'a request under way has lost its proof with the key')
    t.match((await of(token)).identity(), /^token:/)
    t.equal(verified.mock.callCount(), 2)
  },
)

void t.test('a token expires at its own time, whether accepted or signed', async (t) => {
  const { holds, answered, keys } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  const ended = tokenOf(tokens, -1)
  await answered(ended, 200)
  t.equal(await holds(ended), false)
  await keys.learn(published(tokens))
  t.equal(await holds(ended), false)
})

void t.test('with the cluster’s keys a token never seen before holds', async (t) => {
  const { holds, keys } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  const token = tokenOf(tokens)
  t.equal(await holds(token), false)
  await keys.learn(published(tokens))
  t.equal(await holds(token), true)
  t.equal(await holds(tokenOf(tokens, 3600, ['vault'])), false, 'it is for another audience')
  t.equal(await holds(tokenOf(new Tokens())), false, 'another cluster signed it')
})

void t.test('a forged token does not hold, though it resembles an accepted one', async (t) => {
  const { holds, answered, keys } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  await keys.learn(published(tokens))
  const [head, , signature] = tokenOf(tokens).split('.')
  const [, claims] = tokenOf(tokens, 7200, [], 'u-2').split('.')
  await answered(tokenOf(tokens), 200)
  t.equal(await holds([head, claims, signature].join('.')), false)
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  t.equal(await holds([none, claims, ''].join('.')), false)
  const { kid } = published(tokens).keys[0] ?? {}
  for (const alg of ['none', 'HS256', 'RS256']) {
    const named = Buffer.from(JSON.stringify({ alg, kid })).toString('base64url')
    t.equal(await holds([named, claims, signature].join('.')), false, alg)
  }
})

void t.test('a signed token that an API server has refused does not hold', async (t) => {
  const { holds, answered, keys } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  await keys.learn(published(tokens))
  const token = tokenOf(tokens)
  await answered(token, 401)
  t.equal(await holds(token), false)
})

void t.test('proofs outlive a restart, and no token is written', async (t) => {
  const folder = rootFolder(t)
  const before = hub(t, folder)
  const tokens = new Tokens()
  await before.keys.learn(published(tokens))
  const refused = tokenOf(tokens)
  await before.answered('opaque-token', 200)
  await before.answered(refused, 401)
  await before.stop()
  const after = hub(t, folder)
  t.equal(await after.holds('opaque-token'), true)
  t.equal(await after.holds(refused), false)
  t.equal(await after.holds(tokenOf(tokens, 1800)), true, 'its keys are known')
  const written = readFileSync(join(folder, 'proofs.json'), 'utf8')
  for (const part of ['opaque-token', ...refused.split('.')]) t.notOk(written.includes(part))
})

void t.test('a token’s acceptance or refusal survives a process that is killed', async (t) => {
  const folder = rootFolder(t)
  const killed = hub(t, folder)
  await killed.answered('accepted', 200)
  t.equal(await hub(t, folder).holds('accepted'), true)
  await killed.answered('accepted', 401)
  t.equal(await hub(t, folder).holds('accepted'), false)
})

void t.test('malformed files count as none', async (t) => {
  const tokens = new Tokens()
  for (const content of ['', 'null', '{"keys":7}', '[[1,2],["a"],["b","root"]]', '{"issuer":""}']) {
    const folder = rootFolder(t)
    for (const name of ['keys.json', 'proofs.json']) writeFileSync(join(folder, name), content)
    writeFileSync(join(folder, 'keys.json'), content)
    const { holds, answered } = hub(t, folder)
    t.equal(await holds(tokenOf(tokens)), false)
    await answered('a', 200)
    t.equal(await holds('a'), true)
  }
})

void t.test('unusable keys leave the known ones in force', async (t) => {
  const { keys, holds } = hub(t, rootFolder(t))
  const tokens = new Tokens()
  await keys.learn(published(tokens))
  for (const bad of [
    { issuer, keys: [] },
    { issuer: '', keys: published(tokens).keys },
    { issuer, keys: [{ kid: 'a', kty: 'oct', k: 'AAAA' }] },
    { issuer },
  ])
    await t.rejects(keys.learn(bad as unknown as PublishedKeys))
  t.equal(await holds(tokenOf(tokens)), true)
})
