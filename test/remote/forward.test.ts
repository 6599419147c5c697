import { getEventListeners, once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { Secret } from '../../src/base/secret.ts'
import { answerOf, rawUpstream, refusingOrigin } from '../kit/wire/upstream.ts'
import { valuesOf } from '../kit/wire/wire.ts'
import { relay } from './relay.ts'

const get = 'GET /api/v1/pods HTTP/1.1\r\nHost: hub\r\n\r\n'
const post = 'POST /api/v1/pods HTTP/1.1\r\nHost: hub\r\nContent-Length: 4\r\n\r\nbody'

void t.test(
  'a request and its answer pass as they are: path, fields in order and case, body',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write(
      'POST /api/v1/namespaces/a%20b/pods?x=%2F&y=a+b&&z HTTP/1.1\r\nHost: hub\r\nUser-Agent: kubelet/v1\r\n' +
        'ACCEPT: application/json\r\nX-b: 1\r\nx-B: 2\r\nX-B: \xe9\xff\r\nauthorization: Bearer t\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\n\x00\xff\r\nz',
    )
    const wire = await upstream.next()
    const head = await wire.head()
    t.equal(head.line, 'POST /api/v1/namespaces/a%20b/pods?x=%2F&y=a+b&&z HTTP/1.1')
    const passed = head.fields.slice(head.fields.indexOf('User-Agent'))
    // prettier-ignore
    t.strictSame(passed.slice(0, 14), [
    'User-Agent', 'kubelet/v1', 'ACCEPT', 'application/json', 'X-b', '1', 'x-B', '2', 'X-B', '\xe9\xff',
    'authorization', 'Bearer t', 'Content-Type', 'a/b',
  ])
    t.strictSame(valuesOf(head, 'content-length'), ['5'])
    t.equal(await wire.take(5), '\x00\xff\r\nz')
    wire.write(
      'HTTP/1.1 201 Created\r\nAudit-Id: 1\r\nWarning: 299 - "a"\r\nX-kubernetes-PF: \xe9\r\nWARNING: 299 - "b"\r\nContent-Length: 4\r\nDate: then\r\n\r\n\xff\x00\r\n',
    )
    const answer = await client.answer()
    t.equal(answer.status, 201)
    // prettier-ignore
    t.strictSame(answer.fields.slice(0, 12), [
    'Audit-Id', '1', 'Warning', '299 - "a"', 'X-kubernetes-PF', '\xe9', 'WARNING', '299 - "b"', 'Content-Length', '4',
    'Date', 'then',
  ])
    t.equal(answer.body, '\xff\x00\r\n')
    t.strictSame(hub.outcomes, ['answered 0'])
  },
)

void t.test('the upstream is asked by its own name', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  ;(await hub.dial()).write('GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n')
  const wire = await upstream.next()
  t.strictSame(valuesOf(await wire.head(), 'host'), [`127.0.0.1:${upstream.port}`])
})

void t.test('what concerns one connection is passed on in neither direction', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write(
    'GET / HTTP/1.1\r\nHost: hub\r\nConnection: keep-alive, X-Named\r\nX-Named: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: x\r\n' +
      'Proxy-Authorization: secret\r\nProxy-Authenticate: x\r\nTE: trailers\r\nTrailer: X-T\r\nUpgrade: h2c\r\nExpect: 100-continue\r\nX-Kept: 1\r\n\r\n',
  )
  t.match(await client.head(), { line: /100/ })
  const wire = await upstream.next()
  const head = await wire.head()
  for (const name of [
    'x-named',
    'keep-alive',
    'proxy-connection',
    'proxy-authorization',
    'proxy-authenticate',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'transfer-encoding',
  ]) {
    t.strictSame(valuesOf(head, name), [], `to the upstream: ${name}`)
  }
  t.strictSame(valuesOf(head, 'x-kept'), ['1'])
  wire.write(
    'HTTP/1.1 200 OK\r\nConnection: X-Named, close\r\nX-Named: 1\r\nKeep-Alive: timeout=99\r\nProxy-Authenticate: x\r\nProxy-Connection: x\r\n' +
      'Trailer: X-T\r\nTE: x\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\nX-Kept: 1\r\n\r\n0\r\n\r\n',
  )
  const answer = await client.answer()
  for (const name of [
    'x-named',
    'proxy-authenticate',
    'proxy-connection',
    'trailer',
    'te',
    'upgrade',
  ]) {
    t.strictSame(valuesOf(answer, name), [], `to the client: ${name}`)
  }
  t.notMatch(valuesOf(answer, 'keep-alive').join(), '99')
  t.strictSame(
    valuesOf(answer, 'connection'),
    ['keep-alive'],
    'the upstream closes, the hub does not',
  )
  t.strictSame(valuesOf(answer, 'x-kept'), ['1'])
})

const speaking = [
  'Impersonate-User: admin',
  'impersonate-group: system:masters',
  'Impersonate-Extra-scopes: x',
  'X-Remote-User: admin',
  'x-remote-group: system:masters',
  'X-Remote-Extra-A: b',
  'X-Forwarded-For: 10.0.0.1',
  'X-Forwarded-Host: x',
]

void t.test('on the node’s credentials nobody speaks for others', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin], {
    credential: 'node',
    credentials: { token: new Secret('node-token'), files: [] },
  })
  const client = await hub.dial()
  client.write(
    `GET / HTTP/1.1\r\nHost: hub\r\n${speaking.join('\r\n')}\r\nAuthorization: Bearer mine\r\n\r\n`,
  )
  const head = await (await upstream.next()).head()
  for (const line of speaking) t.strictSame(valuesOf(head, line.split(':')[0] ?? ''), [], line)
  t.strictSame(valuesOf(head, 'authorization'), ['Bearer node-token'])
})

void t.test(
  'a caller may impersonate with its own token, and never with what only proxies may say',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin], {
      credentials: { token: new Secret('node-token'), files: [] },
    })
    const client = await hub.dial()
    client.write(
      `GET / HTTP/1.1\r\nHost: hub\r\n${speaking.join('\r\n')}\r\nAuthorization: Bearer mine\r\n\r\n`,
    )
    const head = await (await upstream.next()).head()
    t.strictSame(valuesOf(head, 'impersonate-user'), ['admin'])
    t.strictSame(valuesOf(head, 'impersonate-group'), ['system:masters'])
    t.strictSame(valuesOf(head, 'authorization'), ['Bearer mine'])
    for (const line of speaking.slice(3))
      t.strictSame(valuesOf(head, line.split(':')[0] ?? ''), [], line)
  },
)

void t.test(
  'what is to be recorded is asked for without compression, all else as the client asks',
  async (t) => {
    const upstream = await rawUpstream(t)
    const request = 'GET / HTTP/1.1\r\nHost: hub\r\nAccept-Encoding: gzip\r\n\r\n'
    for (const identityEncoding of [true, false]) {
      const hub = await relay(t, [upstream.origin], { forwarding: { identityEncoding } })
      ;(await hub.dial()).write(request)
      const head = await (await upstream.next()).head()
      t.strictSame(valuesOf(head, 'accept-encoding'), identityEncoding ? [] : ['gzip'])
    }
  },
)

void t.test('an upstream that refuses is passed over, by what changes things too', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [await refusingOrigin(), upstream.origin])
  for (const request of [get, post]) {
    const client = await hub.dial()
    client.write(request)
    const wire = await upstream.next()
    await wire.head()
    if (request === post) t.equal(await wire.take(4), 'body')
    wire.write(answerOf('done', 'HTTP/1.1 200 OK\r\nConnection: close'))
    t.equal((await client.answer()).body, 'done')
  }
  t.strictSame(hub.outcomes, ['failed 0', 'answered 1', 'failed 0', 'answered 1'])
})

void t.test('where all refuse, nobody has seen the request', async (t) => {
  const hub = await relay(t, [await refusingOrigin(), await refusingOrigin()])
  for (const request of [get, post]) {
    const answer = await (await hub.dial()).write(request).answer()
    t.match(answer, { status: 503, body: 'sent: false' })
  }
})

void t.test('a failure brings the next probe forward', async (t) => {
  const refusing = await refusingOrigin()
  const hub = await relay(t, [refusing])
  const before = hub.probes.asked.length
  await (await hub.dial()).write(post).answer()
  await hub.probes.sent(before + 1)
})

void t.test('a reset before the head: a get is repeated at the next upstream', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin, second.origin])
    const client = await hub.dial()
    client.write(`${method} / HTTP/1.1\r\nHost: hub\r\n\r\n`)
    const broken = await first.next()
    await broken.head()
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

void t.test('a reset before the head: what may have been done is not done twice', async (t) => {
  for (const [method, body] of [
    ['POST', 'body'],
    ['POST', ''],
    ['PUT', 'body'],
    ['PATCH', 'body'],
    ['DELETE', ''],
    ['OPTIONS', ''],
  ] as const) {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin, second.origin])
    const client = await hub.dial()
    client.write(
      `${method} /x HTTP/1.1\r\nHost: hub\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    const broken = await first.next()
    await broken.head()
    await broken.take(body.length)
    broken.reset()
    t.match(await client.answer(), { status: 503, body: 'sent: true' }, method)
    t.equal(second.connections.length, 0)
  }
})

void t.test(
  'a lone upstream that closes an idle connection as a get arrives is asked again',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write(get)
    const idle = await upstream.next()
    await idle.head()
    idle.write(answerOf('one'))
    t.equal((await client.answer()).body, 'one')
    client.write(get)
    await idle.head()
    idle.destroy()
    const fresh = await upstream.next()
    await fresh.head()
    fresh.write(answerOf('two'))
    t.equal((await client.answer()).body, 'two')
  },
)

void t.test('it is asked twice at most', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const answer = (await hub.dial()).write(get).answer()
  for (let time = 0; time < 2; time++) (await upstream.next()).reset()
  t.match(await answer, { status: 503, body: 'sent: true' })
  t.equal(upstream.connections.length, 2)
})

void t.test('an answer is an answer, whatever its code', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  for (const code of [401, 403, 404, 410, 429, 500, 502, 503, 504]) {
    const client = await hub.dial()
    client.write(get)
    const wire = await first.next()
    await wire.head()
    wire.write(answerOf('said', `HTTP/1.1 ${code} Said\r\nRetry-After: 1\r\nConnection: close`))
    const answer = await client.answer()
    t.match(answer, { status: code, body: 'said' })
    t.strictSame(valuesOf(answer, 'retry-after'), ['1'])
  }
  t.equal(second.connections.length, 0)
})

void t.test(
  'an answer that stops short is a break to the client, not a short answer',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    for (const head of [
      'Content-Length: 10\r\n\r\nabc',
      'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    ]) {
      for (const cut of ['destroy', 'reset'] as const) {
        const client = await hub.dial()
        client.write(get)
        const wire = await upstream.next()
        await wire.head()
        wire.write(`HTTP/1.1 200 OK\r\n${head}`)
        await client.until('abc')
        wire[cut]()
        t.notMatch(await client.rest(), '0\r\n\r\n')
      }
    }
  },
)

void t.test(
  'an answer that is no HTTP is none, and asked for once more where it may be',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const nonsense = async (): Promise<void> => {
      const wire = await upstream.next()
      await wire.head()
      wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
  await client.until('abc')
  wire.write('nonsense\r\n')
  t.notMatch(await wire.rest(), '0\r\n\r\n', 'half a body is not passed off as a whole one')
  },
)

void t.test('an answer given before the body was read reaches the client', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write('POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 33554432\r\n\r\nx')
  const wire = await upstream.next()
  await wire.head()
  wire.write(answerOf('too much', 'HTTP/1.1 413 Too Large\r\nConnection: close'))
  wire.socket.end()
  t.match(await client.answer(), { status: 413, body: 'too much' })
  client.write(Buffer.alloc(33_554_431)).write(get)
  const next = await upstream.next()
  await next.head()
  next.write(answerOf('next'))
  t.equal((await client.answer()).body, 'next', 'and its connection takes the next request')
})

void t.test(
  'an upstream that breaks while it is sent a body leaves the client an answer',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write('POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000\r\n\r\nabc')
    const wire = await upstream.next()
    await wire.head()
    await wire.take(3)
    wire.reset()
    t.match(await client.answer(), { status: 503, body: 'sent: true' })
  },
)

void t.test('the end of a tenure cuts what hangs on that upstream, and only that', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  const client = await hub.dial()
  client.write('GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: hub\r\n\r\n')
  const wire = await first.next()
  await wire.head()
  wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n')
  await client.until('1\r\na\r\n')
  const waiting = await hub.dial()
  waiting.write(get)
  await (await first.next()).head()
  hub.probes.set(first.origin, 'bad')
  const [upstream] = hub.cloud.upstreams
  await upstream?.probe()
  await upstream?.probe()
  t.equal(await client.rest(), '', 'the stream is broken off, not ended')
  await wire.ended
  const other = await second.next()
  await other.head()
  other.write(answerOf('from the other'))
  t.equal((await waiting.answer()).body, 'from the other')
})

void t.test('nothing stays on a tenure when an exchange is over, however it ended', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const tenure = hub.cloud.upstreams[0]?.tenure ?? AbortSignal.abort()
  for (const end of ['whole', 'cut', 'hung up', 'hung up early'] as const) {
    const client = await hub.dial()
    client.write(get)
    const wire = await upstream.next()
    await wire.head()
    if (end === 'hung up early') {
      client.destroy()
      await wire.ended
      continue
    }
    wire.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\na')
    await client.until('\r\n\r\na')
    if (end === 'whole') {
      wire.write('b')
      await client.take(1)
    }
    if (end === 'cut') wire.reset()
    if (end === 'hung up') client.destroy()
    if (end === 'cut') await client.ended
    else await wire.ended
  }
  t.equal(getEventListeners(tenure, 'abort').length, 0)
})

void t.test(
  'a silent upstream is probed after a second, and only a failed probe moves a get on',
  async (t) => {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin, second.origin])
    const slow = await relay(t, [first.origin, second.origin])
    hub.probes.set(first.origin, 'bad')
    const before = slow.probes.asked.length
    const client = await hub.dial()
    client.write(get)
    const silent = await first.next()
    await silent.head()
    const patient = await slow.dial()
    patient.write(get)
    const late = await first.next()
    await late.head()

    const wire = await second.next()
    await wire.head()
    wire.write(answerOf('from the other'))
    t.equal((await client.answer()).body, 'from the other')
    await silent.ended

    await slow.probes.sent(before + 1)
    late.write(answerOf('late'))
    t.equal((await patient.answer()).body, 'late')
    t.equal(second.connections.length, 1)
  },
)

void t.test('a lone silent upstream is given up after one silence', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  hub.probes.set(upstream.origin, 'bad')
  const answer = await (await hub.dial()).write(get).answer()
  t.match(answer, { status: 503, body: 'sent: true' })
  t.equal(upstream.connections.length, 1)
})

void t.test('a silent upstream keeps what may have been done already', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  hub.probes.set(first.origin, 'bad')
  const before = hub.probes.asked.length
  const client = await hub.dial()
  client.write(post)
  const wire = await first.next()
  await wire.head()
  await hub.probes.sent(before + 1)
  wire.write(answerOf('done'))
  t.equal((await client.answer()).body, 'done')
  t.equal(second.connections.length, 0)
})
