import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { mock } from 'node:test'
import t from 'tap'
import { turn } from '../../../src/base/clock.ts'
import { Secret } from '../../../src/base/secret.ts'
import type { Connections } from '../../../src/http/client/connections.ts'
import { upgrader } from '../../../src/hub/upstream/upgrade.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { aborted } from '../../kit/listener.ts'
import { fillSocket } from '../../kit/wire/fill.ts'
import { rawUpstream, refusingOrigin, type RawUpstream } from '../../kit/wire/upstream.ts'
import { valuesOf, type Teardown, type Wire } from '../../kit/wire/wire.ts'
import { oneUpstream, relay, type Relay, type RelayOptions } from './relay.ts'

const webSocket =
  'GET /api/v1/namespaces/a/pods/p/exec?command=sh&command=-c&stdout=true HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n'

const spdy =
  'POST /api/v1/namespaces/a/pods/p/exec?command=sh HTTP/1.1\r\nHost: hub\r\nUser-Agent: kubectl/v1.28.0\r\nContent-Length: 0\r\nConnection: Upgrade\r\n' +
  'Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n\r\n'

const switching = (protocol: string): string =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n`

interface Joined {
  readonly hub: Relay
  readonly client: Wire
  readonly wire: Wire
}

/** A client and an upstream that speak to each other in a protocol of their own. */
async function joined(t: Teardown, upstream?: RawUpstream): Promise<Joined> {
  const server = upstream ?? (await rawUpstream(t))
  const hub = await relay(t, [server.origin])
  const client = await hub.ask(spdy)
  const wire = await server.asked()
  wire.write(switching('SPDY/3.1'))
  await client.head()
  return { hub, client, wire }
}

void t.test(
  'both ways of upgrading pass as the first request of a connection, bytes in both directions',
  async (t) => {
    for (const [request, protocol] of [
      [webSocket, 'websocket'],
      [spdy, 'SPDY/3.1'],
    ] as const) {
      const { upstream, hub } = await oneUpstream(t)
      const client = await hub.ask(request)
      const wire = await upstream.next()
      const head = await wire.head()
      const [line, , ...fields] = request.trimEnd().split('\r\n')
      t.equal(head.line, line)
      const passed = head.fields.map((name, at) => `${name}: ${head.fields[at + 1]}`)
      for (const field of fields)
        if (!field.startsWith('Content-')) t.ok(passed.includes(field), field)
      t.strictSame(valuesOf(head, 'connection'), ['Upgrade'])
      t.strictSame(valuesOf(head, 'upgrade'), [protocol])
      t.strictSame(valuesOf(head, 'host'), [`127.0.0.1:${upstream.port}`])
      wire.write(switching(protocol))
      const answer = await client.head()
      t.equal(answer.line, 'HTTP/1.1 101 Switching Protocols')
      t.strictSame(valuesOf(answer, 'upgrade'), [protocol])
      t.strictSame(valuesOf(answer, 'x-stream-protocol-version'), ['v4.channel.k8s.io'])
      client.write('up\x00\xff')
      t.equal(await wire.take(4), 'up\x00\xff')
      wire.write('down\x00\xff')
      t.equal(await client.take(6), 'down\x00\xff')
    }
  },
)

void t.test('the path and query pass as they were written', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const url of [
    '/api/v1/namespaces/a/pods/p/exec?command=%2Fbin%2Fsh&command=a\'b&x=http://y//z&c={d}|e^f`g"h',
    '/api/v1/namespaces/a/services/https:web:443/proxy/a//b/%2F?x?y',
  ]) {
    const client = await hub.ask(webSocket.replace(/ \S+ /, () => ` ${url} `))
    t.equal((await (await upstream.next()).head()).line, `GET ${url} HTTP/1.1`)
    client.destroy()
  }
})

void t.test('bytes that come with the heads are not lost', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(`${webSocket}early up`)
  const wire = await upstream.asked()
  wire.write(`${switching('websocket')}early down`)
  t.equal(await wire.take(8), 'early up')
  await client.head()
  t.equal(await client.take(10), 'early down')
  client.write('late')
  t.equal(await wire.take(4), 'late')
})

void t.test('a refusal goes back as it came: code, fields in order and case, body', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const framing of [
    'Content-Length: 9\r\n\r\n{"a":"b"}',
    'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n5\r\n:"b"}\r\n0\r\n\r\n',
  ]) {
    const client = await hub.ask(spdy)
    const wire = await upstream.asked()
    wire.write(
      `HTTP/1.1 403 Forbidden\r\nAudit-Id: 1\r\nWARNING: 299 - "a"\r\nWarning: 299 - "b"\r\nX-accepted: \xe9\r\nContent-Type: application/json\r\n${framing}`,
    )
    const answer = await client.answer()
    t.equal(answer.line, 'HTTP/1.1 403 Forbidden')
    // prettier-ignore
    t.strictSame(answer.fields.slice(0, 10), [
      'Audit-Id', '1', 'WARNING', '299 - "a"', 'Warning', '299 - "b"', 'X-accepted', '\xe9', 'Content-Type', 'application/json',
    ])
    t.equal(answer.body, '{"a":"b"}')
    await client.ended
    const signal = hub.exchanges.at(-1)?.signal ?? AbortSignal.abort()
    await aborted(signal)
    t.notOk(client.socket.writableEnded, 'its connection goes though the client keeps its end')
  }
})

void t.test('a refusal that stops short is a break to the client', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const framing of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
    const client = await hub.ask(spdy)
    const wire = await upstream.asked()
    wire.write(`HTTP/1.1 400 Bad Request\r\n${framing}\r\n\r\n3\r\nabc\r\n`)
    await client.until('abc')
    const reset = once(client.socket, 'error').catch((error: unknown) => [error])
    wire.reset()
    await client.closed
    t.match(await reset, [{ code: 'ECONNRESET' }], framing)
  }
})

void t.test(
  'over TLS, a refusal that stops short ends its connection and nothing else',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t, { secure: true })
    for (let round = 0; round < 2; round++) {
      const client = await hub.ask(spdy)
      const wire = await upstream.asked()
      wire.write('HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nabc')
      await client.until('abc')
      wire.reset()
      await t.resolves(client.closed)
    }
  },
)

void t.test('proxy headers and hop-by-hop fields of an upgrade are not passed on', async (t) => {
  const upstream = await rawUpstream(t)
  const fields = [
    'X-Remote-User: admin',
    'x-forwarded-for: 10.0.0.1',
    'Proxy-Authorization: secret',
    'Proxy-Connection: x',
    'Keep-Alive: timeout=1',
    'TE: trailers',
  ]
  const hub = await relay(t, [upstream.origin])
  await hub.ask(spdy.replace('Content-Length: 0', fields.join('\r\n')))
  const head = await (await upstream.next()).head()
  for (const field of fields) t.strictSame(valuesOf(head, field.split(':')[0] ?? ''), [], field)
  t.strictSame(valuesOf(head, 'upgrade'), ['SPDY/3.1'])
})

const asked = async (t: Teardown, options: RelayOptions): Promise<ReturnType<Wire['head']>> => {
  const { upstream, hub } = await oneUpstream(t, {
    credentials: { token: new Secret('node-token'), files: [] },
    ...options,
  })
  await hub.ask(
    spdy.replace('Content-Length: 0', 'Authorization: Bearer mine\r\nImpersonate-User: admin'),
  )
  return (await upstream.next()).head()
}

void t.test('credentials go upstream as for any other request', async (t) => {
  const node = await asked(t, { credential: 'node' })
  t.strictSame(valuesOf(node, 'authorization'), ['Bearer node-token'])
  t.strictSame(valuesOf(node, 'impersonate-user'), [])
  const caller = await asked(t, { credential: 'caller' })
  t.strictSame(valuesOf(caller, 'authorization'), ['Bearer mine'])
  t.strictSame(valuesOf(caller, 'impersonate-user'), ['admin'])
})

void t.test('a client that sends no more can still be answered', async (t) => {
  const { client, wire } = await joined(t)
  client.write('last').socket.end()
  t.equal(await wire.take(4), 'last')
  await wire.ended
  wire.write('the answer')
  t.equal(await client.take(10), 'the answer')
  wire.socket.end()
  await client.ended
})

void t.test('a half-closed upstream can still be sent bytes', async (t) => {
  const { client, wire } = await joined(t)
  wire.write('last').socket.end()
  t.equal(await client.take(4), 'last')
  await client.ended
  client.write('more')
  t.equal(await wire.take(4), 'more')
  client.socket.end()
  await wire.ended
})

void t.test('a reset of one end reaches the other at once', async (t) => {
  const upstream = await rawUpstream(t)
  const first = await joined(t, upstream)
  first.client.reset()
  await t.resolves(first.wire.ended)
  const second = await joined(t, upstream)
  second.wire.reset()
  await t.resolves(second.client.ended)
})

void t.test(
  'a client that hangs up before the answer takes its connection upstream with it',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask(spdy)
    const wire = await upstream.asked()
    client.reset()
    await t.resolves(wire.ended)
  },
)

void t.test(
  'an upstream that breaks off before its answer leaves the client no answer',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask(spdy)
    const wire = await upstream.asked()
    wire.reset()
    t.equal(await client.rest(), '')
  },
)

void t.test(
  'an upstream that refuses is passed over; where all do the client gets 503',
  async (t) => {
    const upstream = await rawUpstream(t)
    const hub = await relay(t, [await refusingOrigin(), upstream.origin])
    await hub.ask(webSocket)
    t.match(await (await upstream.next()).head(), { line: /^GET/ })
    const nobody = await relay(t, [await refusingOrigin()])
    const client = await nobody.ask(webSocket)
    t.match(await client.answer(), { status: 503, body: 'sent: false' })
    await client.ended
  },
)

void t.test(
  'the end of a tenure cuts tunnels, which are not listed beyond their own',
  async (t) => {
    const upstream = await rawUpstream(t)
    const { hub, client, wire } = await joined(t, upstream)
    const [at] = hub.cloud.upstreams
    const another = await hub.ask(spdy)
    const other = await upstream.asked()
    other.write(switching('SPDY/3.1'))
    await another.head()
    t.equal(at?.underWay.size, 2)
    another.reset()
    await other.ended
    t.equal(at?.underWay.size, 1)
    hub.probes.set(upstream.origin, 'bad')
    await hub.cloud.upstreams[0]?.probe()
    await hub.cloud.upstreams[0]?.probe()
    await Promise.all([client.ended, wire.ended])
  },
)

void t.test('no tunnel begins to an upstream that was removed while it connected', async (t) => {
  const upstream = await rawUpstream(t)
  const { cloud } = await relay(t, [upstream.origin])
  const [removed] = cloud.upstreams
  const made: Socket[] = []
  const connections = {
    connect: async () => {
      const socket = connect(Number(new URL(upstream.origin).port), '127.0.0.1')
      made.push(socket)
      await once(socket, 'connect')
      removed?.close()
      return socket
    },
  } as unknown as Connections
  const asked = upgrader(cloud, connections)(exchangeOf('/api/v1/namespaces/a/pods/p/exec'))
  await t.rejects(asked, { code: 'UNREACHABLE' })
  t.strictSame(
    made.map(({ destroyed }) => destroyed),
    [true],
  )
})

void t.test('an exchange that ends ends its tunnel at both ends, and begins none', async (t) => {
  const upstream = await rawUpstream(t)
  const { hub, wire: first } = await joined(t, upstream)
  const upgrade = upgrader(hub.cloud, hub.connections)
  const [exchange] = hub.exchanges
  if (!exchange) throw new Error('there was no request')
  const clients = await rawUpstream(t)
  const socket = connect(clients.port, '127.0.0.1')
  const client = await clients.next()
  const time = new AbortController()
  const reply = await upgrade({ ...exchange, signal: time.signal })
  reply.take(socket, Buffer.alloc(0))
  const wire = await upstream.asked()
  wire.write(switching('SPDY/3.1'))
  await client.head()
  time.abort(new Error('its time is over'))
  await Promise.all([client.ended, wire.ended])
  await t.rejects(upgrade({ ...exchange, signal: time.signal }), { message: 'its time is over' })
  t.equal(upstream.connections.length, 2)
  first.destroy()
})

void t.test('a client that does not read stops the upstream', async (t) => {
  const { client, wire } = await joined(t)
  client.socket.pause()
  const far = wire.socket as Socket
  const { taken } = await fillSocket(far, Buffer.alloc(1024 * 1024))
  t.ok(taken < 24 * 1024 * 1024, `${taken} bytes`)
})

void t.test('an upgrade is reported with the code of its answer', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const [answer, code] of [
    [switching('SPDY/3.1'), 101],
    ['HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n', 403],
    ['', 0],
  ] as const) {
    const client = await hub.ask(spdy)
    const wire = await upstream.asked()
    wire.write(answer)
    if (code > 0) await client.head()
    wire.destroy()
    await client.ended
    t.equal(await hub.upgraded.at(-1), code)
  }
})

void t.test('bytes through a tunnel count as received from the upstream', async (t) => {
  const { hub, client, wire } = await joined(t)
  const [upstream] = hub.cloud.upstreams
  const before = performance.now()
  t.equal(upstream?.receivedSince(before), false)
  wire.write('hello')
  t.equal(await client.take(5), 'hello')
  t.equal(upstream?.receivedSince(before), true)
})

void t.test('an upstream that refuses upgrades is ejected in the end', async (t) => {
  const upstream = await rawUpstream(t)
  const hub = await relay(t, [await refusingOrigin(), upstream.origin])
  for (let i = 0; i < 5; i++) {
    await hub.ask(spdy)
    await upstream.asked()
  }
  t.equal(hub.cloud.upstreams[0]?.availability, 'ejected')
})

void t.test('an answered upgrade outlives that time', async (t) => {
  const { upstream, hub } = await oneUpstream(t, { upgradeAnswerMs: 100 })
  const client = await hub.ask(spdy)
  const wire = await upstream.next()
  wire.write(switching('SPDY/3.1'))
  await client.head()
  // One that came later is over by then.
  const late = await hub.ask(spdy)
  await late.ended
  wire.write('still here')
  t.equal(await client.take(10), 'still here')
})

void t.test('an upgrade has a minute for its answer, and is cut at both ends then', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(spdy)
  const wire = await upstream.next()
  await wire.head()
  const answered = hub.upgraded[0]
  mock.timers.tick(59_999)
  t.equal(await Promise.race([answered, turn()]), undefined)
  mock.timers.tick(1)
  await Promise.all([client.ended, wire.ended])
  t.equal(await answered, 0)
})
