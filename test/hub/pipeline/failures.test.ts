import t from 'tap'
import type { BodyReply } from '../../../src/http/exchange/exchange.ts'
import {
  notFound,
  StatusError,
  tooManyRequests,
  unauthorized,
} from '../../../src/api/kube/status.ts'
import { withEncoding } from '../../../src/hub/pipeline/encoding.ts'
import { withLastResort } from '../../../src/hub/pipeline/failures.ts'
import { Unreachable } from '../../../src/hub/upstream/forward.ts'
import { MalformedPath } from '../../../src/api/request/request-info.ts'
import { objectOf } from '../../kit/client.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const pod = { group: '', resource: 'pods', name: 'a' }

/** What each failure is to a client, and whether it is a surprise to us. */
const failures: readonly (readonly [error: unknown, told: object, unforeseen: boolean])[] = [
  [new StatusError(notFound(pod)), { code: 404, reason: 'NotFound' }, false],
  [new StatusError(tooManyRequests('later', 7)), { code: 429, reason: 'TooManyRequests' }, false],
  [new Unreachable(false), { code: 503, message: 'no API server can be reached' }, false],
  [new Unreachable(true), { code: 503, message: /whether it took effect is unknown/ }, false],
  [new Error('a secret of ours'), { code: 500, reason: 'InternalError' }, true],
  [new TypeError('x is not a function'), { code: 500, reason: 'InternalError' }, true],
  ['not even an error', { code: 500, reason: 'InternalError' }, true],
]

for (const encoding of ['json', 'protobuf'] as const) {
  for (const [error, told, unforeseen] of failures) {
    void t.test(`${String(error)} in ${encoding} is ${JSON.stringify(told)}`, async (t) => {
      const seen: unknown[] = []
      const handle = withEncoding((cause) => seen.push(cause))(() => Promise.reject(error as Error))
      const accept = { json: 'application/json', protobuf: 'application/vnd.kubernetes.protobuf' }
      const exchange = exchangeOf('/api/v1/pods', { headers: { Accept: accept[encoding] } })
      const reply = (await handle(exchange)) as BodyReply
      t.match(reply, { kind: 'body', from: 'hub', status: (told as { code: number }).code })
      t.equal(reply.headers.get('content-type'), accept[encoding])
      t.equal(reply.headers.get('content-length'), String(reply.body.byteLength))
      const headers = { 'content-type': accept[encoding] }
      const status = objectOf({ headers, body: Buffer.from(reply.body) })
      t.match(status, { kind: 'Status', status: 'Failure', ...told })
      t.notMatch(JSON.stringify(status), 'a secret of ours', 'what we did wrong is for the log')
      t.strictSame(seen, unforeseen ? [error] : [])
    })
  }
}

void t.test('a synchronous failure becomes a Status like any other', async (t) => {
  const handle = withEncoding(() => undefined)(() => {
    throw new StatusError(tooManyRequests('later', 7))
  })
  const reply = (await handle(exchangeOf('/api/v1/pods'))) as BodyReply
  t.equal(reply.headers.get('retry-after'), '7')
})

void t.test('a failure after the client has gone is logged as 499, and as no fault', async (t) => {
  const seen: unknown[] = []
  const client = new AbortController()
  client.abort()
  const handle = withEncoding((cause) => seen.push(cause))(() => Promise.reject(new Error('gone')))
  t.match(await handle(exchangeOf('/api/v1/pods', { signal: client.signal })), { status: 499 })
  t.strictSame(seen, [])
})

void t.test(
  'a failure before the encoding is known is answered in JSON, and counted',
  async (t) => {
    const refused: BodyReply[] = []
    const handle = withLastResort(
      () => undefined,
      (_incoming, reply) => refused.push(reply),
    )(() => Promise.reject(new StatusError(unauthorized())))
    const headers = { Accept: 'application/vnd.kubernetes.protobuf' }
    const reply = (await handle(exchangeOf('/api/v1/pods', { headers }))) as BodyReply
    t.equal(reply.headers.get('content-type'), 'application/json')
    t.match(JSON.parse(Buffer.from(reply.body).toString()), { kind: 'Status', code: 401 })
    t.strictSame(refused, [reply])
  },
)

void t.test('a malformed request is answered as by net/http, without a Status', async (t) => {
  const ignore = (): void => undefined
  const handle = withLastResort(ignore, ignore)(() => Promise.reject(new MalformedPath('no')))
  const reply = (await handle(exchangeOf('/api/v1/pods'))) as BodyReply
  t.equal(reply.status, 400)
  t.equal(reply.headers.get('content-type'), 'text/plain; charset=utf-8')
  t.equal(reply.headers.get('connection'), 'close')
  t.equal(Buffer.from(reply.body).toString(), '400 Bad Request')
})
