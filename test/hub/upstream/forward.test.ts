import t from 'tap'
import { Secret } from '../../../src/base/secret.ts'
import { answerOf } from '../../kit/wire/upstream.ts'
import { valuesOf } from '../../kit/wire/wire.ts'
import { get, getLog, oneUpstream, twoUpstreams } from './relay.ts'

void t.test(
  'a request and its answer pass as they are: path, fields in order and case, body',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask(
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

void t.test('the upstream gets its own name as Host', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  await hub.ask('GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n')
  const wire = await upstream.next()
  t.strictSame(valuesOf(await wire.head(), 'host'), [`127.0.0.1:${upstream.port}`])
})

void t.test('hop-by-hop fields are passed on in neither direction', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(
    'GET / HTTP/1.1\r\nHost: hub\r\nConnection: keep-alive, X-Named\r\nX-Named: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: x\r\n' +
      'connection: x-MORE,authorization\r\nx-More: 1\r\nAuthorization: Bearer a\r\n' +
      'Proxy-Authorization: secret\r\nProxy-Authenticate: x\r\nTE: trailers\r\nTrailer: X-T\r\nExpect: 100-continue\r\nContent-Length: 1\r\nX-Kept: 1\r\n\r\nx',
  )
  t.match(await client.head(), { line: /100/ })
  const wire = await upstream.next()
  const head = await wire.head()
  for (const name of [
    'x-named',
    'x-more',
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
  t.strictSame(valuesOf(head, 'authorization'), ['Bearer a'], 'though Connection names it')
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
  const { upstream, hub } = await oneUpstream(t)
  await hub.ask('GET / HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
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

void t.test('the node’s credentials carry no impersonation fields', async (t) => {
  const { upstream, hub } = await oneUpstream(t, {
    credential: 'node',
    credentials: { token: new Secret('node-token'), files: [] },
  })
  await hub.ask(
    `GET / HTTP/1.1\r\nHost: hub\r\n${speaking.join('\r\n')}\r\nAuthorization: Bearer mine\r\n\r\n`,
  )
  const head = await (await upstream.next()).head()
  for (const line of speaking) t.strictSame(valuesOf(head, line.split(':')[0] ?? ''), [], line)
  t.strictSame(valuesOf(head, 'authorization'), ['Bearer node-token'])
})

void t.test(
  'a caller may impersonate with its own token, and never with proxy headers',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t, {
      credentials: { token: new Secret('node-token'), files: [] },
    })
    await hub.ask(
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

void t.test('an answer is an answer, whatever its code', async (t) => {
  const { first, second, hub } = await twoUpstreams(t)
  for (const code of [401, 403, 404, 410, 429, 500, 502, 503, 504]) {
    const client = await hub.ask(get)
    const wire = await first.asked()
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
    const { upstream, hub } = await oneUpstream(t)
    for (const head of [
      'Content-Length: 10\r\n\r\nabc',
      'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    ]) {
      for (const cut of ['destroy', 'reset'] as const) {
        const client = await hub.ask(getLog)
        const wire = await upstream.asked()
        wire.write(`HTTP/1.1 200 OK\r\n${head}`)
        await client.until('abc')
        wire[cut]()
        t.notMatch(await client.rest(), '0\r\n\r\n')
      }
    }
  },
)

void t.test(
  'an answer that stops being HTTP breaks off, after what has gone out by then',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask(getLog)
    const wire = await upstream.asked()
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await client.until('abc')
    wire.write('nonsense\r\n')
    t.notMatch(await client.rest(), '0\r\n\r\n')
  },
)

void t.test('trailers come after the body, as they were', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(get)
  const wire = await upstream.asked()
  wire.write(
    'HTTP/1.1 200 OK\r\nTrailer: X-One\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-One: 1\r\nx-TWO: 2\r\n\r\n',
  )
  const { body, trailers } = await client.answer()
  t.equal(body, 'abc')
  t.strictSame(trailers, ['X-One', '1', 'x-TWO', '2'])
})

void t.test('provisional answers are not taken for the answer', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(get)
  const wire = await upstream.asked()
  wire.write('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n')
  wire.write(answerOf('whole'))
  t.match(await client.answer(), { status: 200, body: 'whole' })
})

void t.test(
  'a HEAD is answered with the head a GET would have, and the connection goes on',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask('HEAD /a HTTP/1.1\r\nHost: hub\r\n\r\n')
    const wire = await upstream.next()
    t.equal((await wire.head()).line, 'HEAD /a HTTP/1.1')
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: "x"\r\n\r\n')
    const answer = await client.answer('HEAD')
    t.strictSame(valuesOf(answer, 'content-length'), ['1234'])
    client.write(get)
    const next = await upstream.asked()
    next.write(answerOf('body'))
    t.equal((await client.answer()).body, 'body')
  },
)

void t.test('answers without a body end where they end', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const code of [204, 304]) {
    const client = await hub.ask(get)
    const wire = await upstream.asked()
    wire.write(`HTTP/1.1 ${code} Nothing\r\nConnection: close\r\n\r\n`)
    t.equal((await client.answer()).status, code)
  }
})

void t.test(
  'a body without length ends with the upstream’s connection, and is chunked for the client',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask(get)
    const wire = await upstream.asked()
    wire.write('HTTP/1.0 200 OK\r\n\r\nsome bytes')
    wire.socket.end()
    t.equal((await client.answer()).body, 'some bytes')
  },
)

void t.test('heads of almost 64 KB pass in both directions', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.dial()
  const long = 'v'.repeat(60 * 1024)
  client.write(`GET / HTTP/1.1\r\nHost: hub\r\nX-Long: ${long}\r\n\r\n`)
  const wire = await upstream.next()
  t.equal(valuesOf(await wire.head(), 'x-long')[0]?.length, long.length)
  wire.write(answerOf('', `HTTP/1.1 200 OK\r\nX-Long: ${long}`))
  t.equal(valuesOf(await client.answer(), 'x-long')[0]?.length, long.length)
})
