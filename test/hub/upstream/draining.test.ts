import t from 'tap'
import { answerOf, rawUpstream, refusingOrigin } from '../../kit/wire/upstream.ts'
import { valuesOf } from '../../kit/wire/wire.ts'
import { get, post, relay, twoUpstreams } from './relay.ts'

const retryAfter = 'Audit-Id: 1\r\nConnection: close\r\nRetry-After: 1'
const shuttingDown = {
  json: answerOf(
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"apiserver is shutting down","reason":"ServiceUnavailable","code":503}\n',
    `HTTP/1.1 503 Service Unavailable\r\n${retryAfter}\r\nContent-Type: application/json`,
  ),
  text: answerOf(
    'The apiserver is shutting down, please try again later.\n',
    `HTTP/1.1 429 Too Many Requests\r\n${retryAfter}\r\nContent-Type: text/plain; charset=utf-8`,
  ),
}
const watch = 'GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: hub\r\n\r\n'

void t.test('reads refused by a stopping API server go to the next one', async (t) => {
  for (const [request, answer] of [
    [get, shuttingDown.json],
    [get, shuttingDown.text],
    [watch, shuttingDown.text],
  ] as const) {
    const { first, second, hub } = await twoUpstreams(t)
    const client = await hub.ask(request)
    const leaving = await first.asked()
    const [head, body] = answer.split('\r\n\r\n')
    leaving.write(`${head}\r\n\r\n`)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    leaving.write(body ?? '')
    const wire = await second.asked()
    wire.write(answerOf('from the other'))
    t.match(await client.answer(), { status: 200, body: 'from the other' })
  }
})

void t.test('without another upstream, or for a write, the refusal is passed on', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  for (const [origins, request] of [
    [[first.origin], get],
    [[first.origin, await refusingOrigin()], get],
    [[first.origin, second.origin], post],
  ] as const) {
    const hub = await relay(t, origins)
    const client = await hub.ask(request)
    const wire = await first.asked()
    if (request === post) await wire.take(4)
    wire.write(shuttingDown.json)
    const answer = await client.answer()
    t.match(answer, { status: 503, body: /shutting down/ })
    t.strictSame(valuesOf(answer, 'retry-after'), ['1'])
  }
  t.equal(first.connections.length, 3, 'no upstream is tried twice')
  t.equal(second.connections.length, 0)
})

void t.test('other 503 and 429 answers of an API server do not mean draining', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const answers = [
    shuttingDown.json.replace('Audit-Id: 1', 'X-Kubernetes-PF-FlowSchema-UID: 1'),
    shuttingDown.json.replace('apiserver is', 'the backend is'),
    shuttingDown.json.replace('Retry-After: 1\r\n', ''),
    answerOf(
      'Too many requests, please try again later.\n',
      `HTTP/1.1 429 Too Many Requests\r\n${retryAfter}`,
    ),
  ]
  for (const answer of answers) {
    const client = await hub.ask(get)
    const wire = await first.asked()
    wire.write(answer).destroy()
    t.match((await client.answer()).status, /503|429/)
  }
  t.equal(second.connections.length, 0)
})
