import t from 'tap'
import { answerOf, rawUpstream, refusingOrigin } from '../../kit/wire/upstream.ts'
import { get, oneUpstream, post, relay, twoUpstreams } from './relay.ts'

void t.test('an upstream that refuses is passed over, by what changes things too', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [await refusingOrigin(), upstream.origin])
  for (const request of [get, post]) {
    const client = await hub.ask(request)
    const wire = await upstream.asked()
    if (request === post) t.equal(await wire.take(4), 'body')
    wire.write(answerOf('done', 'HTTP/1.1 200 OK\r\nConnection: close'))
    t.equal((await client.answer()).body, 'done')
  }
  t.strictSame(hub.outcomes, ['failed 0', 'answered 1', 'failed 0', 'answered 1'])
})

void t.test('where all upstreams refuse, the request counts as unsent', async (t) => {
  const hub = await relay(t, [await refusingOrigin(), await refusingOrigin()])
  for (const request of [get, post]) {
    const answer = await (await hub.ask(request)).answer()
    t.match(answer, { status: 503, body: 'sent: false' })
  }
})

void t.test('a failure brings the next probe forward', async (t) => {
  const refusing = await refusingOrigin()
  const hub = await relay(t, [refusing])
  const before = hub.probes.asked.length
  await (await hub.ask(post)).answer()
  await t.resolves(hub.probes.sent(before + 1))
})

const gateways = (status: number): string =>
  answerOf('<html>no backend</html>', `HTTP/1.1 ${status} Said\r\nContent-Type: text/html`)

void t.test(
  'a gateway that finds no API server has not answered what may be repeated',
  async (t) => {
    for (const status of [502, 503, 504]) {
      const { first, second, hub } = await twoUpstreams(t)
      const client = await hub.ask(get)
      const before = await first.asked()
      before.write(gateways(status))
      const wire = await second.asked()
      wire.write(answerOf('from the other'))
      t.equal((await client.answer()).body, 'from the other')
      t.strictSame(hub.outcomes, ['failed 0', 'answered 1'])
    }
  },
)

void t.test('a lone gateway’s 502 counts as no answer', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(get)
  for (let i = 0; i < 2; i++) {
    const wire = await upstream.asked()
    wire.write(gateways(502))
  }
  t.match(await client.answer(), { status: 503, body: 'sent: true' })
})

void t.test('an API server’s 503 is an answer, and so is a gateway’s to a write', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const marks = [
    'Audit-Id: 1\r\nContent-Type: text/plain',
    'Content-Type: application/json',
    'Content-Type: application/vnd.kubernetes.protobuf',
  ]
  for (const [request, field] of [
    ...marks.map((mark) => [get, mark] as const),
    [post, 'Content-Type: text/html'] as const,
  ]) {
    const client = await hub.ask(request)
    const wire = await upstream.asked()
    wire.write(answerOf('said', `HTTP/1.1 503 Said\r\nConnection: close\r\n${field}`))
    t.match(await client.answer(), { status: 503, body: 'said' }, field)
  }
})

void t.test('a reset before the head: a get is repeated at the next upstream', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const { first, second, hub } = await twoUpstreams(t)
    const client = await hub.ask(`${method} / HTTP/1.1\r\nHost: hub\r\n\r\n`)
    const broken = await first.asked()
    broken.reset()
    const wire = await second.next()
    t.equal((await wire.head()).line, `${method} / HTTP/1.1`)
    wire.write(
      method === 'HEAD' ? 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n' : answerOf('other'),
    )
    t.equal((await client.answer(method)).status, 200)
    t.strictSame(hub.outcomes, ['failed 0', 'answered 1'])
  }
})

void t.test(
  'a reset before the head: a request that may have taken effect is not repeated',
  async (t) => {
    for (const [method, body] of [
      ['POST', 'body'],
      ['POST', ''],
      ['PUT', 'body'],
      ['PATCH', 'body'],
      ['DELETE', ''],
      ['OPTIONS', ''],
    ] as const) {
      const { first, second, hub } = await twoUpstreams(t)
      const client = await hub.ask(
        `${method} /x HTTP/1.1\r\nHost: hub\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      const broken = await first.asked()
      await broken.take(body.length)
      broken.reset()
      t.match(await client.answer(), { status: 503, body: 'sent: true' }, method)
      t.equal(second.connections.length, 0)
    }
  },
)

void t.test('a get on an idle connection that closes is retried at a lone upstream', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(get)
  const idle = await upstream.asked()
  idle.write(answerOf('one'))
  t.equal((await client.answer()).body, 'one')
  client.write(get)
  await idle.head()
  idle.destroy()
  const fresh = await upstream.asked()
  fresh.write(answerOf('two'))
  t.equal((await client.answer()).body, 'two')
})

void t.test('a read is sent twice at most', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const answer = (await hub.ask(get)).answer()
  for (let time = 0; time < 2; time++) (await upstream.asked()).reset()
  t.match(await answer, { status: 503, body: 'sent: true' })
  t.equal(upstream.connections.length, 2)
})

void t.test(
  'a request that was seen once was seen, though the second time it was not',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const answer = (await hub.ask(get)).answer()
    const wire = await upstream.asked()
    await upstream.stop()
    wire.reset()
    t.match(await answer, { status: 503, body: 'sent: true' })
  },
)

void t.test('a short answer that breaks off is requested again, and arrives whole', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const client = await hub.ask(get)
  const broken = await first.asked()
  broken.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
  broken.destroy()
  const wire = await second.asked()
  wire.write(answerOf('whole'))
  t.match(await client.answer(), { status: 200, body: 'whole' })
  t.strictSame(hub.outcomes, ['failed 0', 'answered 1'])
})

void t.test('the answer to a write is passed on as it comes, a break included', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const client = await hub.ask(post)
  const wire = await first.asked()
  wire.write('HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nabc').destroy()
  t.notMatch(await client.rest(), /^HTTP\/1.1 503/)
  t.equal(second.connections.length, 0)
})

void t.test('an answer that is no HTTP counts as none, and a read is retried once', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const [request, times] of [
    [get, 2],
    [post, 1],
  ] as const) {
    const answer = (await hub.ask(request)).answer()
    for (let time = 0; time < times; time++) {
      const wire = await upstream.asked()
      wire.write('HTTP/1.1 200 OK\r\nnonsense\r\n\r\n')
    }
    t.match(await answer, { status: 503, body: 'sent: true' })
  }
})

const tooNew = answerOf(
  '{"code":504}',
  'HTTP/1.1 504 Gateway Timeout\r\nAudit-Id: 1\r\nContent-Type: application/json',
)

void t.test('an upstream behind the requested version is passed over', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  const client = await hub.ask('GET /api/v1/pods?resourceVersion=7 HTTP/1.1\r\nHost: hub\r\n\r\n')
  const behind = await first.asked()
  behind.write(tooNew)
  const ahead = await second.asked()
  ahead.write(answerOf('seven'))
  t.match(await client.answer(), { status: 200, body: 'seven' })
  t.strictSame(hub.outcomes, ['answered 0', 'answered 1'])
})

void t.test('where no other upstream is ahead or reachable, its 504 is the answer', async (t) => {
  const upstream = await rawUpstream(t)
  for (const origins of [[upstream.origin], [upstream.origin, await refusingOrigin()]]) {
    const hub = await relay(t, origins)
    const client = await hub.ask('GET /api/v1/pods?resourceVersion=7 HTTP/1.1\r\nHost: hub\r\n\r\n')
    const wire = await upstream.asked()
    wire.write(tooNew)
    t.match(await client.answer(), { status: 504, body: '{"code":504}' })
  }
  t.equal(upstream.connections.length, 2, 'no upstream is tried twice')
})

const refusal = (status: number): string =>
  answerOf(
    `{"kind":"Status","code":${status}}`,
    `HTTP/1.1 ${status} Said\r\nContent-Type: application/json\r\nConnection: close`,
  )

void t.test('an API server that refuses a read while it is starting is passed over', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  for (const upstream of hub.cloud.upstreams) {
    hub.probes.set(upstream.origin, 'unready')
    upstream.broken()
    await upstream.probe()
  }
  for (const status of [401, 403, 404]) {
    const client = await hub.ask(get)
    const starting = await first.asked()
    starting.write(refusal(status))
    const ready = await second.asked()
    ready.write(answerOf('allowed', 'HTTP/1.1 200 OK\r\nConnection: close'))
    t.match(await client.answer(), { status: 200, body: 'allowed' })
  }
  const client = await hub.ask(get)
  for (const upstream of [first, second]) (await upstream.asked()).write(refusal(403))
  t.equal((await client.answer()).status, 403, 'the answer where all refuse')
  await hub.ask(post)
  const asked = await first.asked()
  await asked.take(4)
  asked.write(refusal(403))
  t.equal(second.connections.length, 4, 'a write is sent once')
})

void t.test('a 504 to a read without a version is an answer like any other', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  for (const path of ['/api/v1/pods', '/api/v1/pods?resourceVersion=0']) {
    const client = await hub.ask(`GET ${path} HTTP/1.1\r\nHost: hub\r\n\r\n`)
    const wire = await first.asked()
    wire.write(tooNew.replace('Audit-Id: 1', 'Audit-Id: 1\r\nConnection: close'))
    t.equal((await client.answer()).status, 504)
  }
  t.equal(second.connections.length, 0)
})

void t.test('a gateway’s 502 to a write counts against its upstream, too', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  for (let i = 0; i < 5; i++) {
    const client = await hub.ask(post)
    const wire = await first.asked()
    await wire.take(4)
    wire.write(gateways(502).replace('Content-Type', 'Connection: close\r\nContent-Type'))
    t.equal((await client.answer()).status, 502)
  }
  t.equal(hub.cloud.upstreams[0]?.availability, 'ejected')
  await hub.ask(post)
  await second.asked()
})

const unauthorized = answerOf('{}', 'HTTP/1.1 401 Unauthorized\r\nAudit-Id: 1')
const remove = 'DELETE /api/v1/pods/a HTTP/1.1\r\nHost: hub\r\n\r\n'

void t.test('where one upstream refuses the hub, the request goes to the next one', async (t) => {
  const { first, second, hub } = await twoUpstreams(t, { credential: 'node' })
  const client = await hub.ask(remove)
  ;(await first.asked()).write(unauthorized)
  ;(await second.asked()).write(answerOf('done', 'HTTP/1.1 200 OK\r\nConnection: close'))
  t.equal((await client.answer()).body, 'done')
  // It has refused lately, so that others come first.
  const next = await hub.ask(remove)
  ;(await second.asked()).write(answerOf('done, too'))
  t.equal((await next.answer()).body, 'done, too')
})

void t.test('a write counts as sent where the next one may have received it', async (t) => {
  const { first, second, hub } = await twoUpstreams(t, { credential: 'node' })
  const client = await hub.ask(remove)
  ;(await first.asked()).write(unauthorized)
  ;(await second.asked()).reset()
  t.match(await client.answer(), { status: 503, body: 'sent: true' })
})
