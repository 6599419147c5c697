import { join } from 'node:path'
import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import type { GVR } from '../../../src/api/kube/gvk.ts'
import { serviceAccount, tokenHolder, type Identity } from '../../../src/api/request/identity.ts'
import type { Exchange } from '../../../src/http/exchange/exchange.ts'
import {
  charactersOfDecision,
  longestRequest,
  mostDecisions,
  mostOfUser,
  RecordedDecisions,
} from '../../../src/hub/authorization/recorded-decisions.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { Upgrade } from '../../../src/hub/upstream/upgrade.ts'
import type { Forward } from '../../../src/hub/upstream/forward.ts'
import { AccessReviews } from '../../../src/hub/cache/shared/access-reviews.ts'
import { Broadcast } from '../../../src/base/broadcast.ts'
import { elapsed } from '../../../src/base/clock.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const url = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const robot = serviceAccount({ namespace: 'default', name: 'robot', uid: 'u-1' })

const noHooks = { onReviewed: () => undefined, onFailure: () => undefined }

const noReviews = {
  refused: async () => undefined,
  allowed: new Broadcast<[Identity, GVR, number]>(),
}

const decisionsIn = (
  folder: string,
  closedOnes: string[] = [],
  access: Pick<AccessReviews, 'refused' | 'allowed'> = noReviews,
): RecordedDecisions =>
  new RecordedDecisions(join(folder, 'decisions.json'), {
    access,
    isCached: () => false,
    isKnown: (identities) => identities.endsWith('/robot/'),
    onClosed: (...closed) => closedOnes.push(closed.join(': ')),
    onForgotten: (user) => closedOnes.push(`${user} is forgotten`),
    onFailure: () => undefined,
  })

const as = (identity: Exchange['identity'], path: string, method = 'GET'): Exchange => ({
  ...exchangeOf(path, { method }),
  identity,
  credential: 'caller',
})

const reads = (identity: Exchange['identity'], name: string): Exchange =>
  as(identity, `/api/v1/namespaces/default/configmaps/${name}`)

/** What an API server answers to a caller that asks about a config map. */
const answer = async (
  decisions: RecordedDecisions,
  name: string,
  status: JsonObject,
  identity: Exchange['identity'] = robot,
  verb = 'get',
): Promise<void> => {
  const resourceAttributes = { verb, resource: 'configmaps', namespace: 'default', name }
  await reviewed(decisions, { resourceAttributes }, status, identity)
}

/** What an API server answers to a caller's review of its own rights. */
const reviewed = async (
  decisions: RecordedDecisions,
  spec: JsonObject,
  status: JsonObject,
  identity: Exchange['identity'] = robot,
  sentAt = elapsed(),
): Promise<void> => {
  const kind = 'SelfSubjectAccessReview'
  await decisions.onReview(as(identity, url, 'POST'), { kind, spec, status }, sentAt)
}

/** Sends a request to an API server that answers with this status. */
const forwarding =
  (decisions: RecordedDecisions, status: number) =>
  async (exchange: Exchange): Promise<void> => {
    const forward: Forward = async () => ({
      kind: 'bytes',
      from: 'cloud',
      status,
      headers: new HeaderList(['Audit-Id', 'a']),
      source: () => () => undefined,
    })
    await decisions.heeding(forward)(exchange, { onOutcome: () => undefined })
  }

const isRefused = (decisions: RecordedDecisions, exchange: Exchange): boolean =>
  decisions.refusal(exchange) !== undefined

void t.test('a review with an evaluation error denies nothing', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  await answer(decisions, 'one', { allowed: false, evaluationError: 'webhook: no route' })
  t.notOk(isRefused(decisions, reads(robot, 'one')))
  await answer(decisions, 'one', { allowed: false, reason: 'RBAC: role not found' })
  t.ok(isRefused(decisions, reads(robot, 'one')))
  await answer(decisions, 'one', { allowed: true, evaluationError: 'of another authorizer' })
  t.notOk(isRefused(decisions, reads(robot, 'one')))
})

void t.test("a review's no counts after the hub's own yes, however soon", async (t) => {
  let now = 1
  t.capture(Date, 'now', () => now)
  const folder = rootFolder(t)
  const access = new AccessReviews(join(folder, 'access.json'), noHooks)
  const decisions = decisionsIn(folder, [], access)
  const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
  const list = as(robot, '/api/v1/namespaces/default/configmaps')
  const deny = async () => answer(decisions, '', { allowed: false }, robot, 'list')
  await deny()
  now += 30_000
  await access.of(robot, configMaps, async () => true)
  t.notOk(isRefused(decisions, list))
  for (let i = 0; i < 2; i++) {
    now += 30_000
    await deny()
    t.ok(isRefused(decisions, list))
    t.equal(access.last(robot, configMaps), false, 'nor is it given what others share')
  }
  now += 30_000
  await access.of(robot, configMaps, async () => true)
  await decisions[Symbol.asyncDispose]()
  now = 0
  t.notOk(isRefused(decisionsIn(folder), list), 'whatever the clock is set to')
})

void t.test("the hub's own yes lifts what was denied before, for good", async (t) => {
  const folder = rootFolder(t)
  const access = new AccessReviews(join(folder, 'access.json'), noHooks)
  const decisions = decisionsIn(folder, [], access)
  const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
  const deny = (namespace: string) =>
    reviewed(
      decisions,
      { resourceAttributes: { verb: 'list', resource: 'configmaps', namespace } },
      { allowed: false },
    )
  const lists = (namespace: string) => as(robot, `/api/v1/namespaces/${namespace}/configmaps`)
  await deny('a')
  const answer = Promise.withResolvers<boolean>()
  const review = access.of(robot, configMaps, () => answer.promise)
  await deny('b')
  answer.resolve(true)
  await review
  for (const namespace of ['a', 'b'])
    t.ok(isRefused(decisions, lists(namespace)), 'the review was overtaken')
  t.capture(performance, 'now', () => Number.MAX_SAFE_INTEGER)
  await access.of(robot, configMaps, async () => true)
  for (const namespace of ['a', 'b']) t.notOk(isRefused(decisions, lists(namespace)))
  await deny('c')
  t.notOk(isRefused(decisions, lists('a')), 'the last decision about it was yes')
  t.ok(isRefused(decisions, lists('c')))
})

void t.test('a denial of one thing does not take back a yes to another', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  await answer(decisions, 'one', { allowed: false })
  const sentAt = elapsed()
  await answer(decisions, 'two', { allowed: false })
  const of = { verb: 'get', resource: 'configmaps', namespace: 'default' }
  const yes = (name: string) =>
    reviewed(decisions, { resourceAttributes: { ...of, name } }, { allowed: true }, robot, sentAt)
  await yes('one')
  await yes('two')
  t.notOk(isRefused(decisions, reads(robot, 'one')), 'sent after its denial')
  t.ok(isRefused(decisions, reads(robot, 'two')), 'sent before its denial')
})

void t.test('only answers of a ready API server to upgrades count', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const watch = as(robot, '/api/v1/namespaces/default/configmaps?watch=true')
  const answered = async (
    head: { readonly status: number; readonly isStarting?: true },
    ...headers: string[]
  ) => {
    const finalHead = Promise.resolve({ ...head, headers: new HeaderList(headers) })
    const refuses: Upgrade = async () => ({
      kind: 'upgrade',
      from: 'cloud',
      finalHead,
      take: () => undefined,
    })
    await decisions.heedingUpgrades(refuses)(watch)
    await finalHead
  }
  await answered({ status: 403 })
  await answered({ status: 403, isStarting: true }, 'Audit-Id', 'a')
  t.notOk(isRefused(decisions, watch))
  await answered({ status: 403 }, 'Audit-Id', 'a')
  t.ok(isRefused(decisions, watch))
  await answered({ status: 101 })
  t.notOk(isRefused(decisions, watch), 'as API servers answer, without their fields')
})

void t.test('a yes to another question lifts no denial', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const leases = 'leases.coordination.k8s.io'
  const list = as(robot, '/apis/coordination.k8s.io/v1/namespaces/default/leases')
  const of = { verb: 'list', namespace: 'default' }
  const deny = { resourceAttributes: { ...of, group: 'coordination.k8s.io', resource: 'leases' } }
  await reviewed(decisions, deny, { allowed: false })
  for (const spec of [
    { resourceAttributes: { ...of, resource: leases } },
    { resourceAttributes: { ...of, resource: 'leases', group: '' } },
    { nonResourceAttributes: { verb: 'list', path: `${leases}/` } },
    { resourceAttributes: { ...deny.resourceAttributes, subresource: 'status' } },
    { resourceAttributes: { ...deny.resourceAttributes, newerMember: 'that narrows it' } },
  ]) {
    await reviewed(decisions, spec, { allowed: true })
    t.ok(isRefused(decisions, list), JSON.stringify(spec))
  }
  await reviewed(decisions, deny, { allowed: true })
  t.notOk(isRefused(decisions, list))
})

void t.test('a yes to what was sent before a denial lifts nothing', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const sentBefore = elapsed()
  await answer(decisions, 'one', { allowed: false })
  const resourceAttributes = {
    verb: 'get',
    resource: 'configmaps',
    namespace: 'default',
    name: 'one',
  }
  await reviewed(decisions, { resourceAttributes }, { allowed: true }, robot, sentBefore)
  t.ok(isRefused(decisions, reads(robot, 'one')))
  await reviewed(decisions, { resourceAttributes }, { allowed: true }, robot, Infinity)
  t.notOk(isRefused(decisions, reads(robot, 'one')))
})

void t.test('a denied list whose selectors are too long is denied without them', async (t) => {
  const path = '/api/v1/namespaces/default/configmaps'
  const long = as(robot, `${path}?labelSelector=${'x'.repeat(longestRequest)}`)
  const decisions = decisionsIn(rootFolder(t))
  await forwarding(decisions, 403)(long)
  for (const exchange of [long, as(robot, path)]) t.ok(isRefused(decisions, exchange))
})

void t.test('an account is one caller, whatever its uid, and a token one of its own', async (t) => {
  const folder = rootFolder(t)
  const [one, other] = [tokenHolder('one'), tokenHolder('other')]
  const before = decisionsIn(folder)
  await answer(before, 'one', {})
  await answer(before, 'one', {}, one)
  const again = serviceAccount({ namespace: 'default', name: 'robot', uid: 'u-2' })
  // Nothing is left to be written: the hub may have crashed.
  for (const decisions of [before, decisionsIn(folder)]) {
    t.ok(isRefused(decisions, reads(again, 'one')))
    t.notOk(isRefused(decisions, reads(again, 'two')))
    t.ok(isRefused(decisions, reads(one, 'one')))
    t.notOk(isRefused(decisions, reads(other, 'one')))
  }
})

void t.test('a caller with many denials evicts no other caller’s', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const loud = tokenHolder('loud')
  await answer(decisions, 'one', {})
  for (let i = 0; i < 2 * mostOfUser; i++) await answer(decisions, `none-${i}`, {}, loud)
  t.ok(isRefused(decisions, reads(robot, 'one')))
  t.ok(isRefused(decisions, reads(loud, 'none-0')))
  t.ok(mostDecisions > 8 * mostOfUser)
})

void t.test(
  'the callers with the most denials make room, and are refused altogether',
  async (t) => {
    const folder = rootFolder(t)
    const changes: string[] = []
    const before = decisionsIn(folder, changes)
    await answer(before, 'one', {})
    const loud = Array.from({ length: mostDecisions / mostOfUser }, (_, i) =>
      tokenHolder(`loud-${i}`),
    )
    for (const each of loud) {
      const names = Array.from({ length: mostOfUser }, (_, i) => `none-${i}`)
      await Promise.all(names.map((name) => answer(before, name, {}, each)))
    }
    t.strictSame(changes, ['token:loud-0: get configmaps'], 'each is named once')
    for (const decisions of [before, decisionsIn(folder)]) {
      t.ok(isRefused(decisions, reads(robot, 'one')))
      for (const each of loud) t.ok(isRefused(decisions, reads(each, 'none-0')))
      t.ok(isRefused(decisions, reads(tokenHolder('loud-0'), 'some')))
      t.notOk(isRefused(decisions, reads(tokenHolder('loud-1'), 'some')))
    }
  },
)

void t.test('a caller that cannot take less room is forgotten, and named once', async (t) => {
  const changes: string[] = []
  const decisions = decisionsIn(rootFolder(t), changes)
  const loud = Array.from({ length: 1 + mostDecisions / mostOfUser }, (_, i) =>
    tokenHolder(`loud-${i}`),
  )
  for (const each of loud) {
    const verbs = Array.from({ length: mostOfUser }, (_, i) => `verb-${i}`)
    await Promise.all(verbs.map((verb) => answer(decisions, 'one', {}, each, verb)))
  }
  t.strictSame(changes, ['token:loud-0 is forgotten'])
})

void t.test('a repeated denial waits until the first is on the disk', async (t) => {
  const folder = rootFolder(t)
  const decisions = decisionsIn(folder)
  const list = as(robot, '/api/v1/namespaces/default/configmaps')
  const forward = forwarding(decisions, 403)
  const first = forward(list)
  await forward(list)
  // As after kill -9 now.
  t.ok(isRefused(decisionsIn(folder), list))
  await first
})

void t.test('a 404 counts as a permission', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const answers = (status: number) => forwarding(decisions, status)(reads(robot, 'one'))
  await answers(403)
  await answers(500)
  t.ok(isRefused(decisions, reads(robot, 'one')))
  await answers(404)
  t.notOk(isRefused(decisions, reads(robot, 'one')))
})

void t.test('a long request counts as many, and one that is too long not at all', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const path = (length: number): string => `/${'x'.repeat(length)}`
  const deny = (verb: string, name: string) => answer(decisions, name, {}, robot, verb)
  await deny(path(longestRequest), 'one')
  const parts = 8
  for (let i = 0; i <= mostOfUser / parts; i++)
    await deny(`${path((parts - 1) * charactersOfDecision)}${i}`, 'one')
  await deny('get', 'one')
  t.notOk(isRefused(decisions, reads(robot, 'one')), 'there is no room')
  const again = decisionsIn(rootFolder(t))
  await answer(again, 'one', {}, robot, path(longestRequest))
  await answer(again, 'one', {})
  t.ok(isRefused(again, reads(robot, 'one')))
})

void t.test('a denial of an account without records is not remembered', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const told = async (name: string): Promise<void> =>
    decisions.onReview(
      as(tokenHolder('prober'), url, 'POST'),
      {
        kind: 'SubjectAccessReview',
        spec: {
          user: `system:serviceaccount:default:${name}`,
          groups: [
            'system:serviceaccounts',
            'system:serviceaccounts:default',
            'system:authenticated',
          ],
          resourceAttributes: {
            verb: 'get',
            resource: 'configmaps',
            namespace: 'default',
            name: 'one',
          },
        },
        status: { allowed: false },
      },
      elapsed(),
    )
  await told('robot')
  await told('made-up')
  const madeUp = serviceAccount({ namespace: 'default', name: 'made-up', uid: 'u-3' })
  t.ok(isRefused(decisions, reads(robot, 'one')))
  t.notOk(isRefused(decisions, reads(madeUp, 'one')))
})
