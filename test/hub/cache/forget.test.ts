import t from 'tap'
import { statusBody } from '../../../src/api/codec/render.ts'
import type { BytesReply, Reply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { notFound, resourceNotFound, type Status } from '../../../src/api/kube/status.ts'
import { objectKey } from '../../../src/hub/answers/keys.ts'
import { object, pod } from '../../contracts/object-store.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { recordingIn, sourceOf } from './recording.ts'

const url = '/api/v1/namespaces/default/pods/a'
const headers = { Accept: 'application/vnd.kubernetes.protobuf,application/json' }

const answer = (type: string, body: Uint8Array, status = 404): BytesReply => ({
  kind: 'bytes',
  status,
  headers: new HeaderList(['Content-Type', type]),
  from: 'cloud',
  source: sourceOf(body),
})

const absent = notFound({ resource: 'pods', group: '', name: 'a' })
const json = (status: Status): BytesReply => answer('application/json', statusBody('json', status))

/** A recorder before a store that holds the pod in every form the client takes. */
async function recording(directory: string) {
  const cache = await recordingIn(directory)
  const exchange = exchangeOf(url, { headers })
  const { info, representations } = exchange
  const keys = representations.flatMap((representation) =>
    info.isResource ? [objectKey(exchange, info, representation)] : [],
  )
  for (const key of keys) await cache.store.put(key, pod, object('a', 5))
  return {
    ...cache,
    kept: () => keys.map((key) => cache.store.get(key) !== undefined),
    record: (reply: BytesReply, path = url): Promise<Reply> => {
      const asked = exchangeOf(path, { headers })
      return Promise.resolve(cache.recorder.record(cache.recorder.plan(asked)!, asked, reply))
    },
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
  await using cache = await recording(t.testdir())
  cache.store.forget = () => Promise.reject(new Error('full'))
  const told = await cache.record(json(absent))
  t.match(told, { kind: 'body', status: 404 })
  t.equal(cache.failures.length, 2, 'of two forms')
})
