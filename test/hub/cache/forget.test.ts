import t from 'tap'
import { join } from 'node:path'
import { storedKey } from '../../../src/base/stored-key.ts'
import { RecordedReviews } from '../../../src/hub/answers/recorded-reviews.ts'
import { Recorder } from '../../../src/hub/cache/recorder.ts'
import { statusBody } from '../../../src/api/codec/render.ts'
import type { BytesReply, Exchange, Reply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { notFound, resourceNotFound, type Status } from '../../../src/api/kube/status.ts'
import { componentOf } from '../../../src/api/request/component.ts'
import { representationsOf } from '../../../src/api/request/representation.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'
import { parseRequestInfo } from '../../../src/api/request/request-info.ts'
import { objectKey } from '../../../src/hub/answers/keys.ts'
import { openStore } from '../../../src/hub/store/log/open.ts'
import type { ObjectStore } from '../../../src/hub/store/store.ts'
import { object, pod } from '../../contracts/object-store.ts'

const accept = 'application/vnd.kubernetes.protobuf,application/json'
const url = '/api/v1/namespaces/default/pods/a'

function exchangeOf(path = url): Exchange {
  const info = parseRequestInfo('GET', path)
  return {
    id: '1',
    method: 'GET',
    url: path,
    headers: new HeaderList(['Accept', accept]),
    peer: { address: '127.0.0.1', port: 1, localAddress: '127.0.0.1', localPort: 2 },
    upgrade: false,
    signal: new AbortController().signal,
    info,
    component: componentOf('kubelet/v1.35.0'),
    identity: nodeIdentity,
    credential: 'node',
    representations: representationsOf(accept, new URLSearchParams(path.split('?')[1])),
  }
}

const answer = (type: string, body: Uint8Array, code = 404): BytesReply => ({
  kind: 'bytes',
  status: code,
  headers: new HeaderList(['Content-Type', type]),
  from: 'cloud',
  source: (sink) => {
    sink.write(body)
    sink.end()
    return () => undefined
  },
})

const absent = notFound({ resource: 'pods', group: '', name: 'a' })
const json = (status: Status): BytesReply => answer('application/json', statusBody('json', status))

/** A store that holds the pod in every form the client takes, and a recorder before it. */
async function recording(
  directory: string,
  wrap = (store: ObjectStore): ObjectStore => store,
): Promise<
  AsyncDisposable & {
    kept: () => boolean[]
    failures: unknown[]
    record: (reply: BytesReply, path?: string) => Promise<Reply>
  }
> {
  const store = await openStore({
    directory: join(directory, 'cache'),
    sealingKey: storedKey(join(directory, 'store.key')),
    report: () => undefined,
  })
  const failures: unknown[] = []
  const recorder = new Recorder(
    wrap(store),
    () => true,
    {
      onRecorded: () => undefined,
      onStoreFailure: (cause) => failures.push(cause),
      onMalformed: (cause) => failures.push(cause),
      onEvent: () => undefined,
      onUnpacked: () => undefined,
    },
    new RecordedReviews(store, Buffer.alloc(32)),
  )
  const { info, representations } = exchangeOf()
  const keys = representations.flatMap((representation) =>
    info.isResource ? [objectKey(exchangeOf(), info, representation)] : [],
  )
  for (const key of keys) await store.put(key, pod, object('a', 5))
  return {
    kept: () => keys.map((key) => store.get(key) !== undefined),
    failures,
    record: async (reply, path) => {
      const exchange = exchangeOf(path)
      return recorder.record(recorder.plan(exchange)!, exchange, reply)
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

void t.test('an object answered with 404 is forgotten in every encoding', async (t) => {
  for (const reply of [
    json(absent),
    answer('application/vnd.kubernetes.protobuf', statusBody('protobuf', absent)),
  ]) {
    await using cache = await recording(t.testdir())
    t.strictSame(cache.kept(), [true, true])
    const told = await cache.record(reply)
    t.strictSame(cache.kept(), [false, false])
    t.match(told, { kind: 'body', status: 404 }, 'and the client gets the answer of the cloud')
    t.strictSame(cache.failures, [])
  }
})

void t.test('the 404 passes unchanged', async (t) => {
  await using cache = await recording(t.testdir())
  const told = await cache.record(json(absent))
  t.strictSame(
    told.kind === 'body' && Buffer.from(told.body).toString(),
    statusBody('json', absent).toString(),
  )
})

void t.test('only a 404 for this object has it forgotten', async (t) => {
  await using cache = await recording(t.testdir())
  const others = [
    json(resourceNotFound()),
    json(notFound({ resource: 'pods', group: '', name: 'b' })),
    answer('text/plain', Buffer.from('404 page not found')),
    answer('application/json', Buffer.from('404 page not found')),
    answer('application/json', Buffer.from('null')),
    answer('application/vnd.kubernetes.protobuf', Buffer.from('404 page not found')),
    answer('application/json', statusBody('json', absent), 403),
    answer('application/json', statusBody('json', absent), 410),
  ]
  for (const reply of others) t.match(await cache.record(reply), { status: reply.status })
  await cache.record(json(absent), '/api/v1/namespaces/default/pods?limit=500')
  t.strictSame(cache.kept(), [true, true])
  t.strictSame(cache.failures, [])
})

void t.test('a store that fails withholds the answer from no client', async (t) => {
  await using cache = await recording(t.testdir(), (store) => ({
    ...store,
    get: (key) => store.get(key),
    forget: () => Promise.reject(new Error('full')),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }))
  const told = await cache.record(json(absent))
  t.match(told, { kind: 'body', status: 404 })
  t.equal(cache.failures.length, 2, 'of two forms')
})
