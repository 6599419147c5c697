import t from 'tap'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import { onAbort } from '../../../src/base/abort.ts'
import { HubInformer, type InformerState, unreadable } from '../../../src/hub/cache/hub-informer.ts'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import type { Exchange, ListReply, Reply, WatchReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { Condition } from '../../kit/condition.ts'
import { services } from '../../kit/cloud.ts'
import type { Patience } from '../../kit/until.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

// The clock's timers keep no process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))

const representation = objectRepresentation('json')
const gvk = { group: '', version: 'v1', kind: 'Service' }
const head = { status: 200, headers: new HeaderList([]), from: 'cloud' } as const

const object = (name: string, version: string) => ({
  namespace: 'default',
  name,
  uid: name,
  resourceVersion: version,
  bytes: Buffer.from(JSON.stringify({ metadata: { name, namespace: 'default' } })),
})

function list(version: string, ...names: readonly string[]): ListReply {
  const objects = names.map((name) => object(name, version))
  async function* batches() {
    yield { objects }
  }
  return {
    ...head,
    kind: 'list',
    representation,
    list: {
      gvk: { ...gvk, kind: 'ServiceList' },
      head: [],
      batches: batches(),
      end: async () => ({ meta: { resourceVersion: version, continue: '' }, extra: '', tail: [] }),
    },
  }
}

function watch(...events: readonly WatchEvent[]): WatchReply {
  async function* groups() {
    for (const event of events) yield [event]
  }
  return {
    ...head,
    kind: 'watch',
    representation: () => representation,
    gvk: () => gvk,
    events: groups(),
  }
}

const refused = (status: number): Reply => ({
  ...head,
  status,
  kind: 'body',
  body: Buffer.alloc(0),
})

const event = (
  type: 'ADDED' | 'MODIFIED' | 'DELETED',
  name: string,
  version: string,
): WatchEvent => ({
  type,
  object: object(name, version),
})

/** A watch that stays open until it is given up. */
async function* open(signal: AbortSignalLike): AsyncGenerator<readonly WatchEvent[]> {
  yield []
  const { promise, resolve } = Promise.withResolvers<void>()
  using _left = onAbort(signal, resolve)
  await promise
}

/** What was refused rests for half a minute at least: who waits for less sees no try after that. */
const beforeRest: Patience = { seconds: 25 }

/** What the hub asks in turn, each answered with the next of these; the last stays open. */
function following(t: Teardown, answers: readonly (Reply | Error)[], patience: Patience = {}) {
  const asked: string[] = []
  const told: string[][] = []
  const states: InformerState[] = []
  const condition = new Condition(patience)
  const link = new AbortController()
  const informer = new HubInformer<string>({
    of: { versions: [services, { ...services, version: 'v1beta1' }], encoding: 'json' },
    linkChanged: () => link.signal,
    ask: async ({ url, signal }: Exchange): Promise<Reply> => {
      const { pathname, searchParams } = new URL(url, 'http://hub')
      const verb = searchParams.has('watch') ? 'watch' : 'list'
      asked.push(`${verb} ${pathname} ${searchParams.get('resourceVersion')}`)
      const answer = answers[asked.length - 1]
      condition.changed()
      if (answer instanceof Error) throw answer
      return answer ?? { ...watch(), events: open(signal) }
    },
    read: ({ cursor }) => (cursor.name.startsWith('unwanted') ? undefined : cursor.name),
    onValues: (values) => {
      told.push([...values.values()])
      condition.changed()
    },
    onState: (state) => {
      states.push(state)
      condition.changed()
    },
    onFailed: () => undefined,
  })
  t.teardown(() => informer[Symbol.asyncDispose]())
  return { informer, asked, told, states, condition }
}

const path = '/api/v1/services'

void t.test('an API version that is not served gives way to the next one', async (t) => {
  const older = '/api/v1beta1/services'
  const { asked, states, condition } = following(t, [refused(404), list('10')])
  await condition.until(() => asked.length >= 3)
  t.strictSame(asked, [`list ${path} 0`, `list ${older} 0`, `watch ${older} 10`])
  t.strictSame(states[0], { kind: 'synced' })
})

void t.test('after a refusal the state stays, and a retry watches at once', async (t) => {
  const answers = [list('10', 'a'), watch(event('ADDED', 'b', '11')), refused(403)]
  const { informer, asked, told, states, condition } = following(t, answers, beforeRest)
  await condition.until(() => states.at(-1)?.kind === 'refused')
  t.strictSame(states.at(-1), { kind: 'refused', code: 403 })
  t.equal(asked.length, 3, 'it waits')
  informer.retry()
  await condition.until(() => states.at(-1)?.kind === 'synced')
  t.equal(asked[3], `watch ${path} 11`)
  t.strictSame(told, [['a'], ['a', 'b']])
})

void t.test('a retry during a list is not lost', async (t) => {
  const answers = [refused(403), list('10', 'a')]
  const { informer, asked, states, condition } = following(t, answers, beforeRest)
  await condition.until(() => asked.length === 1)
  informer.retry()
  await condition.until(() => states.some(({ kind }) => kind === 'synced'))
  t.strictSame(states[0], { kind: 'refused', code: 403 })
})

void t.test('only a 403 is explained by missing rights', async (t) => {
  const said = (code: number): string => {
    const { why, advice } = unreadable(code)
    return `${why}${advice}`
  }
  t.match(said(403), /does not let this node .*manifests --part rbac has the right$/)
  t.match(said(401), /does not accept the hub's credentials, \/readyz\?verbose says why$/)
  t.match(said(200), /no list of them: is that an API server\?$/)
  for (const code of [200, 401, 404, 406, 503]) t.notMatch(said(code), 'rbac', `${code}`)
})
