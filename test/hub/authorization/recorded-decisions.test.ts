import { join } from 'node:path'
import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { serviceAccount, tokenHolder } from '../../../src/api/request/identity.ts'
import type { Exchange } from '../../../src/http/exchange/exchange.ts'
import {
  mostDecisions,
  mostOfUser,
  RecordedDecisions,
} from '../../../src/hub/authorization/recorded-decisions.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const url = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const robot = serviceAccount({ namespace: 'default', name: 'robot', uid: 'u-1' })

const decisionsIn = (folder: string): RecordedDecisions =>
  new RecordedDecisions(join(folder, 'decisions.json'), {
    access: { refused: async () => undefined, allowedAt: () => undefined },
    isCached: () => false,
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
): Promise<void> => {
  const resourceAttributes = { verb: 'get', resource: 'configmaps', namespace: 'default', name }
  await decisions.onReview(as(identity, url, 'POST'), {
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
    status,
  })
}

const isRefused = (decisions: RecordedDecisions, exchange: Exchange): boolean =>
  decisions.refusal(exchange) !== undefined

void t.test('an authorizer that failed has denied nothing', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  await answer(decisions, 'one', { allowed: false, evaluationError: 'webhook: no route' })
  t.notOk(isRefused(decisions, reads(robot, 'one')))
  await answer(decisions, 'one', { allowed: false, reason: 'RBAC: role not found' })
  t.ok(isRefused(decisions, reads(robot, 'one')))
  await answer(decisions, 'one', { allowed: true, evaluationError: 'of another authorizer' })
  t.notOk(isRefused(decisions, reads(robot, 'one')))
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

void t.test('a caller that is denied much has no other forgotten', async (t) => {
  const decisions = decisionsIn(rootFolder(t))
  const loud = tokenHolder('loud')
  await answer(decisions, 'one', {})
  for (let i = 0; i < 2 * mostOfUser; i++) await answer(decisions, `none-${i}`, {}, loud)
  t.ok(isRefused(decisions, reads(robot, 'one')))
  t.ok(isRefused(decisions, reads(loud, 'none-0')))
  t.ok(mostDecisions > 8 * mostOfUser)
})
