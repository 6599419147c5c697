import t from 'tap'
import pino from 'pino'
import { onAbort } from '../../../src/base/abort.ts'
import type {
  Exchange,
  ListReply,
  Reply,
  ReplySource,
  WatchReply,
} from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import type { ObjectStore } from '../../../src/hub/store/store.ts'
import type { Cloud } from '../../../src/hub/upstream/cloud.ts'
import { ClusterPolicies, PolicyInformers } from '../../../src/hub/wiring/policies.ts'
import { until } from '../../kit/until.ts'

const representation = objectRepresentation('json')
const gvk = { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'Role' }

/** An empty list, and a watch without events that lasts until it is given up. */
function answerFrom(from: ReplySource, { info, signal }: Exchange): Reply {
  const head = { status: 200, headers: new HeaderList([]), from }
  async function* none(): ListReply['list']['batches'] {
    yield { objects: [] }
  }
  async function* open(): AsyncGenerator<readonly []> {
    yield []
    const { promise, resolve } = Promise.withResolvers<void>()
    using _given = onAbort(signal, resolve)
    await promise
  }
  if (info.verb === 'watch') {
    const watch: WatchReply = {
      ...head,
      kind: 'watch',
      representation: () => representation,
      gvk: () => gvk,
      events: open(),
    }
    return watch
  }
  return {
    ...head,
    kind: 'list',
    representation,
    list: {
      gvk: { ...gvk, kind: 'RoleList' },
      head: [],
      batches: none(),
      end: async () => ({ meta: { resourceVersion: '7', continue: '' }, extra: '', tail: [] }),
    },
  }
}

const log = pino({ level: 'silent' })

const refusal: Reply = {
  kind: 'body',
  from: 'cloud',
  status: 403,
  headers: new HeaderList([]),
  body: Buffer.alloc(0),
}

void t.test('policies that were refused count again once an API server lists them', async (t) => {
  let answer: 'cloud' | 'cache' | 'refused' = 'refused'
  const synced = new Set<string>()
  const never = new AbortController().signal
  await using policies = new ClusterPolicies({
    rootDir: t.testdir(),
    store: { confirmedAt: () => 5 } as unknown as ObjectStore,
    isRelated: () => undefined,
    log,
  })
  await using informers = new PolicyInformers(policies, {
    cloud: { online: true, onlineChanged: never } as unknown as Cloud,
    dispatch: async (exchange) => {
      if (answer === 'refused') return refusal
      if (answer === 'cache' && exchange.info.verb === 'watch') {
        synced.add(exchange.info.path)
        throw new Error('no API server answers')
      }
      return answerFrom(answer, exchange)
    },
    log,
  })
  const refused = (): number =>
    policies.verboseLines().filter((line) => line.includes('(403)')).length
  await until('refusals', () => refused() === 4)
  t.equal(policies.authorizer, undefined)

  // No API server answers, though the hub still counts as online: the cache does.
  answer = 'cache'
  informers.reconfigure()
  await until('lists from the cache', () => synced.size === 4)
  t.equal(refused(), 4)
  t.equal(policies.authorizer, undefined)

  answer = 'cloud'
  await until('lists of an API server', () => refused() === 0)
  t.ok(policies.authorizer)
})

void t.test('policies decide once all of them are read', async (t) => {
  const missing = Promise.withResolvers<void>()
  const never = new AbortController().signal
  await using policies = new ClusterPolicies({
    rootDir: t.testdir(),
    store: { confirmedAt: () => 5 } as unknown as ObjectStore,
    isRelated: () => undefined,
    log,
  })
  await using _informers = new PolicyInformers(policies, {
    cloud: { online: true, onlineChanged: never } as unknown as Cloud,
    dispatch: async (exchange) => {
      if (exchange.info.path.endsWith('/rolebindings')) await missing.promise
      return answerFrom('cloud', exchange)
    },
    log,
  })
  await until('three of them', () => policies.verboseLines().length === 1)
  t.match(policies.verboseLines(), [/has not read rolebindings\.rbac\.authorization\.k8s\.io yet/])
  t.equal(policies.authorizer, undefined)
  missing.resolve()
  await until('all of them', () => policies.verboseLines().length === 0)
  t.equal(policies.authorizer?.confirmedAt, 5)
  const attributes = { isResource: false, verb: 'get', path: '/' } as const
  const decision = policies.authorizer?.authorize({ name: 'jane', groups: [] }, attributes)
  t.strictSame(decision, { kind: 'no-opinion', reason: '' })
})
