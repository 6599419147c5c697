import { getEventListeners, once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { Secret } from '../../src/base/secret.ts'
import { fillSocket } from '../kit/wire/fill.ts'
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
      'Proxy-Authorization: secret\r\nProxy-Authenticate: x\r\nTE: trailers\r\nTrailer: X-T\r\nExpect: 100-continue\r\nContent-Length: 1\r\nX-Kept: 1\r\n\r\nx',
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

void t.test('an offer of another protocol that the hub ignores does not go upstream', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write('GET / HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
  const head = await (await upstream.next()).head()
  t.strictSame(valuesOf(head, 'upgrade'), [])
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

const gateways = (status: number): string =>
  answerOf('<html>no backend</html>', `HTTP/1.1 ${status} Said\r\nContent-Type: text/html`)

void t.test(
  'a gateway that finds no API server has not answered what may be repeated',
  async (t) => {
    for (const status of [502, 503, 504]) {
      const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
      const hub = await relay(t, [first.origin, second.origin])
      const client = await hub.dial()
      client.write(get)
      const before = await first.next()
      await before.head()
      before.write(gateways(status))
      const wire = await second.next()
      await wire.head()
      wire.write(answerOf('from the other'))
      t.equal((await client.answer()).body, 'from the other')
      t.strictSame(hub.outcomes, ['failed 0', 'answered 1'])
    }
  },
)

void t.test('where there is but a gateway, nobody has answered', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write(get)
  for (let i = 0; i < 2; i++) {
    const wire = await upstream.next()
    await wire.head()
    wire.write(gateways(502))
  }
  t.match(await client.answer(), { status: 503, body: 'sent: true' })
})

void t.test('what an API server says is an answer, and so is what a write was told', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const marks = [
    'Audit-Id: 1\r\nContent-Type: text/plain',
    'Content-Type: application/json',
    'Content-Type: application/vnd.kubernetes.protobuf',
  ]
  for (const [request, field] of [
    ...marks.map((mark) => [get, mark] as const),
    [post, 'Content-Type: text/html'] as const,
  ]) {
    const client = await hub.dial()
    client.write(request)
    const wire = await upstream.next()
    await wire.head()
    wire.write(answerOf('said', `HTTP/1.1 503 Said\r\nConnection: close\r\n${field}`))
    t.match(await client.answer(), { status: 503, body: 'said' }, field)
  }
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

void t.test(
  'a request that was seen once was seen, though the second time it was not',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const answer = (await hub.dial()).write(get).answer()
    const wire = await upstream.next()
    await wire.head()
    await upstream.stop()
    wire.reset()
    t.match(await answer, { status: 503, body: 'sent: true' })
  },
)

void t.test('an answer is an answer, whatever its code', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  for (const code of [401, 403, 404, 410, 429, 500, 502, 503, 504]) {
    const client = await hub.dial()
    client.write(get)
    const wire = await first.next()
    await wire.head()
    wire.write(
      answerOf(
        'said',
        `HTTP/1.1 ${code} Said\r\nAudit-Id: 1\r\nRetry-After: 1\r\nConnection: close`,
      ),
    )
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
  'a short answer that breaks off is asked for again, and the client sees it whole',
  async (t) => {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin, second.origin])
    const client = await hub.dial()
    client.write(get)
    const broken = await first.next()
    await broken.head()
    broken.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
    broken.destroy()
    const wire = await second.next()
    await wire.head()
    wire.write(answerOf('whole'))
    t.match(await client.answer(), { status: 200, body: 'whole' })
    t.strictSame(hub.outcomes, ['failed 0', 'answered 1'])
  },
)

void t.test('what has changed something is answered as it comes, a break included', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  const client = await hub.dial()
  client.write(post)
  const wire = await first.next()
  await wire.head()
  wire.write('HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nabc').destroy()
  t.notMatch(await client.rest(), /^HTTP\/1.1 503/)
  t.equal(second.connections.length, 0)
})

void t.test(
  'an answer that is no HTTP is none, and asked for once more where it may be',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    for (const [request, times] of [
      [get, 2],
      [post, 1],
    ] as const) {
      const answer = (await hub.dial()).write(request).answer()
      for (let time = 0; time < times; time++) {
        const wire = await upstream.next()
        await wire.head()
        wire.write('HTTP/1.1 200 OK\r\nnonsense\r\n\r\n')
      }
      t.match(await answer, { status: 503, body: 'sent: true' })
    }
  },
)

void t.test(
  'nor is one that stops being HTTP, and what has gone out by then breaks off',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write(get)
    const wire = await upstream.next()
    await wire.head()
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await client.until('abc')
    wire.write('nonsense\r\n')
    t.notMatch(await client.rest(), '0\r\n\r\n')
  },
)

void t.test('trailers come after the body, as they were', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write(get)
  const wire = await upstream.next()
  await wire.head()
  wire.write(
    'HTTP/1.1 200 OK\r\nTrailer: X-One\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-One: 1\r\nx-TWO: 2\r\n\r\n',
  )
  const { body, trailers } = await client.answer()
  t.equal(body, 'abc')
  t.strictSame(trailers, ['X-One', '1', 'x-TWO', '2'])
})

void t.test('provisional answers are not taken for the answer', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write(get)
  const wire = await upstream.next()
  await wire.head()
  wire.write('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n')
  wire.write(answerOf('whole'))
  t.match(await client.answer(), { status: 200, body: 'whole' })
})

void t.test(
  'a HEAD is answered with the head a GET would have, and the connection goes on',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write('HEAD /a HTTP/1.1\r\nHost: hub\r\n\r\n')
    const wire = await upstream.next()
    t.equal((await wire.head()).line, 'HEAD /a HTTP/1.1')
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: "x"\r\n\r\n')
    const answer = await client.answer('HEAD')
    t.strictSame(valuesOf(answer, 'content-length'), ['1234'])
    client.write(get)
    const next = await upstream.next()
    await next.head()
    next.write(answerOf('body'))
    t.equal((await client.answer()).body, 'body')
  },
)

void t.test('answers without a body end where they end', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  for (const code of [204, 304]) {
    const client = await hub.dial()
    client.write(get)
    const wire = await upstream.next()
    await wire.head()
    wire.write(`HTTP/1.1 ${code} Nothing\r\nConnection: close\r\n\r\n`)
    t.equal((await client.answer()).status, code)
  }
})

void t.test(
  'a body without length ends with the upstream’s connection, and is chunked for the client',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write(get)
    const wire = await upstream.next()
    await wire.head()
    wire.write('HTTP/1.0 200 OK\r\n\r\nsome bytes')
    wire.socket.end()
    t.equal((await client.answer()).body, 'some bytes')
  },
)

void t.test('heads of almost 64 KB pass in both directions', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  const long = 'v'.repeat(60 * 1024)
  client.write(`GET / HTTP/1.1\r\nHost: hub\r\nX-Long: ${long}\r\n\r\n`)
  const wire = await upstream.next()
  t.equal(valuesOf(await wire.head(), 'x-long')[0]?.length, long.length)
  wire.write(answerOf('', `HTTP/1.1 200 OK\r\nX-Long: ${long}`))
  t.equal(valuesOf(await client.answer(), 'x-long')[0]?.length, long.length)
})

void t.test('a chunked request body passes as it comes, before it is whole', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write('PUT /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
  const wire = await upstream.next()
  t.strictSame(valuesOf(await wire.head(), 'transfer-encoding'), ['chunked'])
  t.equal(await wire.until('abc'), '3\r\nabc')
  client.write('2\r\nde\r\n0\r\n\r\n')
  t.equal(await wire.until('0\r\n\r\n'), '\r\n2\r\nde\r\n0\r\n\r\n')
  wire.write(answerOf('ok'))
  t.equal((await client.answer()).body, 'ok')
})

void t.test('a chunked answer reaches the client chunk by chunk', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write(get)
  const wire = await upstream.next()
  await wire.head()
  wire.write(
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  t.match(await client.head(), { line: /200/ }, 'the head comes before any byte of the body')
  for (const chunk of ['{"a":1}\n', '{"b":2}\n']) {
    wire.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    t.equal(await client.chunk(), chunk)
  }
})

void t.test('a client that does not read stops the upstream, and loses nothing', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const { socket } = await hub.dial()
  socket.removeAllListeners('data').pause()
  socket.write('GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n')
  const wire = await upstream.next()
  await wire.head()
  wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  const far = wire.socket as Socket
  const chunk = Buffer.from(`100000\r\n${'x'.repeat(1024 * 1024)}\r\n`)
  const { taken, chunks } = await fillSocket(far, chunk)
  t.ok(taken < 24 * 1024 * 1024, `${taken} bytes were taken for a client that reads none`)
  far.write('0\r\n\r\n')
  let received = 0
  socket.on('data', (data: Buffer) => {
    for (const byte of data) if (byte === 0x78) received++
  })
  socket.resume()
  await once(socket, 'end')
  t.equal(received, chunks * 1024 * 1024)
})

void t.test('an upstream that does not read stops the client', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  const client = await hub.dial()
  client.write('POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 268435456\r\n\r\nx')
  const wire = await upstream.next()
  await wire.head()
  wire.socket.pause()
  const { taken } = await fillSocket(client.socket as Socket, Buffer.alloc(1024 * 1024, 'x'))
  t.ok(taken < 24 * 1024 * 1024, `${taken} bytes were taken for an upstream that reads none`)
})

void t.test('a client that hangs up ends the request upstream at once', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  for (const answered of ['nothing', 'head', 'body'] as const) {
    const client = await hub.dial()
    client.write(get)
    const wire = await upstream.next()
    await wire.head()
    if (answered !== 'nothing') {
      wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      if (answered === 'body') wire.write('1\r\na\r\n')
      await client.head()
    }
    client.destroy()
    await wire.ended
  }
  t.notOk(hub.outcomes.includes('failed 0'), 'it is not the upstream that failed')
})

void t.test(
  'a client that breaks off within its body ends the request upstream at once',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [upstream.origin])
    const client = await hub.dial()
    client.write('POST /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    const wire = await upstream.next()
    await wire.head()
    await wire.until('abc')
    client.destroy()
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

void t.test('a silence that one has found out moves all who wait for that upstream', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  hub.probes.set(first.origin, 'silent')
  const before = hub.probes.asked.length
  ;(await hub.dial()).write(get)
  await (await first.next()).head()
  await hub.probes.sent(before + 1)
  const late = await hub.dial()
  late.write(get)
  await (await first.next()).head()
  hub.probes.set(first.origin, 'bad')
  // By its own probe it would be left where it is.
  hub.probes.set(first.origin, 'good')
  for (let i = 0; i < 2; i++) {
    const wire = await second.next()
    await wire.head()
    wire.write(answerOf('from the other'))
  }
  t.equal((await late.answer()).body, 'from the other')
})

void t.test('who comes while an upstream is silent is sent to another first', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  const [upstream] = hub.cloud.upstreams
  hub.probes.set(first.origin, 'silent')
  ;(await hub.dial()).write(get)
  await (await second.next()).head()
  t.match(upstream, { verdict: 'healthy', standing: 'silent' })
  ;(await hub.dial()).write(get)
  await (await second.next()).head()
  t.equal(first.connections.length, 1)
  hub.probes.set(first.origin, 'good')
  await upstream?.probe()
  ;(await hub.dial()).write(get)
  await (await first.next()).head()
})

void t.test('a long silence is asked about again and again', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  const before = hub.probes.asked.length
  ;(await hub.dial()).write(get)
  await (await first.next()).head()
  await hub.probes.sent(before + 1)
  hub.probes.set(first.origin, 'bad')
  await (await second.next()).head()
  t.equal(hub.probes.asked[before + 1], first.origin)
})

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

void t.test('an API server that is being stopped sends what may be repeated on', async (t) => {
  for (const [request, answer] of [
    [get, shuttingDown.json],
    [get, shuttingDown.text],
    [watch, shuttingDown.text],
  ] as const) {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin, second.origin])
    const client = await hub.dial()
    client.write(request)
    const leaving = await first.next()
    await leaving.head()
    const [head, body] = answer.split('\r\n\r\n')
    leaving.write(`${head}\r\n\r\n`)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    leaving.write(body ?? '')
    const wire = await second.next()
    await wire.head()
    wire.write(answerOf('from the other'))
    t.match(await client.answer(), { status: 200, body: 'from the other' })
  }
})

void t.test(
  'where there is no other, or it may not be repeated, its word is passed on',
  async (t) => {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    for (const [origins, request] of [
      [[first.origin], get],
      [[first.origin, await refusingOrigin()], get],
      [[first.origin, second.origin], post],
    ] as const) {
      const hub = await relay(t, origins)
      const client = await hub.dial()
      client.write(request)
      const wire = await first.next()
      await wire.head()
      if (request === post) await wire.take(4)
      wire.write(shuttingDown.json)
      const answer = await client.answer()
      t.match(answer, { status: 503, body: /shutting down/ })
      t.strictSame(valuesOf(answer, 'retry-after'), ['1'])
    }
    t.equal(first.connections.length, 3, 'nobody is asked twice')
    t.equal(second.connections.length, 0)
  },
)

void t.test('what an API server says once it knows who asks is no leaving', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
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
    const client = await hub.dial()
    client.write(get)
    const wire = await first.next()
    await wire.head()
    wire.write(answer).destroy()
    t.match((await client.answer()).status, /503|429/)
  }
  t.equal(second.connections.length, 0)
})

void t.test('a lone silent upstream is given up after one silence', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [upstream.origin])
  hub.probes.set(upstream.origin, 'silent')
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

const tooNew = answerOf(
  '{"code":504}',
  'HTTP/1.1 504 Gateway Timeout\r\nAudit-Id: 1\r\nContent-Type: application/json',
)

void t.test('who has not come as far as the version asked for is passed over', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  const client = await hub.dial()
  client.write('GET /api/v1/pods?resourceVersion=7 HTTP/1.1\r\nHost: hub\r\n\r\n')
  const behind = await first.next()
  await behind.head()
  behind.write(tooNew)
  const ahead = await second.next()
  await ahead.head()
  ahead.write(answerOf('seven'))
  t.match(await client.answer(), { status: 200, body: 'seven' })
  t.strictSame(hub.outcomes, ['answered 0', 'answered 1'])
})

void t.test('where nobody has, or who might cannot be asked, that is the answer', async (t) => {
  const upstream = await rawUpstream(t)
  for (const origins of [[upstream.origin], [upstream.origin, await refusingOrigin()]]) {
    const hub = await relay(t, origins)
    const client = await hub.dial()
    client.write('GET /api/v1/pods?resourceVersion=7 HTTP/1.1\r\nHost: hub\r\n\r\n')
    const wire = await upstream.next()
    await wire.head()
    wire.write(tooNew)
    t.match(await client.answer(), { status: 504, body: '{"code":504}' })
  }
  t.equal(upstream.connections.length, 2, 'nobody is asked twice')
})

void t.test('a 504 to who named no version is an answer like any other', async (t) => {
  const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
  const hub = await relay(t, [first.origin, second.origin])
  for (const path of ['/api/v1/pods', '/api/v1/pods?resourceVersion=0']) {
    const client = await hub.dial()
    client.write(`GET ${path} HTTP/1.1\r\nHost: hub\r\n\r\n`)
    const wire = await first.next()
    await wire.head()
    wire.write(tooNew.replace('Audit-Id: 1', 'Audit-Id: 1\r\nConnection: close'))
    t.equal((await client.answer()).status, 504)
  }
  t.equal(second.connections.length, 0)
})

void t.test(
  'what a gateway tells a write counts against it, as what it tells a read',
  async (t) => {
    const [first, second] = [await rawUpstream(t), await rawUpstream(t)]
    const hub = await relay(t, [first.origin, second.origin])
    for (let i = 0; i < 5; i++) {
      const client = await hub.dial()
      client.write(post)
      const wire = await first.next()
      await wire.head()
      await wire.take(4)
      wire.write(gateways(502).replace('Content-Type', 'Connection: close\r\nContent-Type'))
      t.equal((await client.answer()).status, 502)
    }
    t.equal(hub.cloud.upstreams[0]?.standing, 'ejected')
    ;(await hub.dial()).write(post)
    await (await second.next()).head()
  },
)
