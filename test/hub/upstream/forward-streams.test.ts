import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { fillSocket } from '../../kit/wire/fill.ts'
import { answerOf } from '../../kit/wire/upstream.ts'
import { valuesOf } from '../../kit/wire/wire.ts'
import { get, getLog, oneUpstream, twoUpstreams } from './relay.ts'

void t.test('a chunked request body passes as it comes, before it is whole', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(
    'PUT /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
  )
  const wire = await upstream.next()
  t.strictSame(valuesOf(await wire.head(), 'transfer-encoding'), ['chunked'])
  t.equal(await wire.until('abc'), '3\r\nabc')
  client.write('2\r\nde\r\n0\r\n\r\n')
  t.equal(await wire.until('0\r\n\r\n'), '\r\n2\r\nde\r\n0\r\n\r\n')
  wire.write(answerOf('ok'))
  t.equal((await client.answer()).body, 'ok')
})

void t.test('a chunked answer reaches the client chunk by chunk', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(getLog)
  const wire = await upstream.asked()
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
  const { upstream, hub } = await oneUpstream(t)
  const { socket } = await hub.dial()
  socket.removeAllListeners('data').pause()
  socket.write('GET / HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n')
  const wire = await upstream.asked()
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
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask(
    'POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 268435456\r\n\r\nx',
  )
  const wire = await upstream.asked()
  wire.socket.pause()
  const { taken } = await fillSocket(client.socket as Socket, Buffer.alloc(1024 * 1024, 'x'))
  t.ok(taken < 24 * 1024 * 1024, `${taken} bytes were taken for an upstream that reads none`)
})

void t.test('a client that hangs up ends the request upstream at once', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  for (const answered of ['nothing', 'head', 'body'] as const) {
    const client = await hub.ask(getLog)
    const wire = await upstream.asked()
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
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask(
      'POST /x HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    )
    const wire = await upstream.asked()
    await wire.until('abc')
    client.destroy()
    t.notMatch(await wire.rest(), '0\r\n\r\n', 'half a body is not passed off as a whole one')
  },
)

void t.test('an answer given before the body was read reaches the client', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const client = await hub.ask('POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 33554432\r\n\r\nx')
  const wire = await upstream.asked()
  wire.write(answerOf('too much', 'HTTP/1.1 413 Too Large\r\nConnection: close'))
  wire.socket.end()
  t.match(await client.answer(), { status: 413, body: 'too much' })
  client.write(Buffer.alloc(33_554_431)).write(get)
  const next = await upstream.asked()
  next.write(answerOf('next'))
  t.equal((await client.answer()).body, 'next', 'and its connection takes the next request')
})

void t.test(
  'an upstream that breaks while it is sent a body leaves the client an answer',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const client = await hub.ask('POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000\r\n\r\nabc')
    const wire = await upstream.asked()
    await wire.take(3)
    wire.reset()
    t.match(await client.answer(), { status: 503, body: 'sent: true' })
  },
)

void t.test(
  'the end of a tenure cuts its streams, and its pending reads go elsewhere',
  async (t) => {
    const { first, second, hub } = await twoUpstreams(t)
    const client = await hub.ask('GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: hub\r\n\r\n')
    const wire = await first.asked()
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n')
    await client.until('1\r\na\r\n')
    const waiting = await hub.ask(get)
    await first.asked()
    hub.probes.set(first.origin, 'bad')
    const [upstream] = hub.cloud.upstreams
    await upstream?.probe()
    await upstream?.probe()
    t.equal(await client.rest(), '', 'the stream is broken off, not ended')
    await wire.ended
    const other = await second.asked()
    other.write(answerOf('from the other'))
    t.equal((await waiting.answer()).body, 'from the other')
  },
)

void t.test(
  'an answer that breaks off puts its API server in doubt, unless a pod gave it',
  async (t) => {
    const { upstream, hub } = await oneUpstream(t)
    const [server] = hub.cloud.upstreams
    hub.probes.set(upstream.origin, 'unready')
    for (const [path, isInDoubt] of [
      ['/api/v1/namespaces/default/services/web/proxy/', false],
      ['/api/v1/namespaces/default/pods/a/log?follow=true', false],
      ['/api/v1/pods?watch=true', true],
    ] as const) {
      const client = await hub.ask(`GET ${path} HTTP/1.1\r\nHost: hub\r\n\r\n`)
      const wire = await upstream.asked()
      wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n')
      await client.until('1\r\na\r\n')
      wire.reset()
      await client.ended
      t.equal(server?.isStarting, isInDoubt, path)
    }
  },
)

void t.test('an upstream lists no exchange that is over, however it ended', async (t) => {
  const { upstream, hub } = await oneUpstream(t)
  const [at] = hub.cloud.upstreams
  for (const end of ['whole', 'cut', 'hung up', 'hung up early'] as const) {
    const client = await hub.ask(getLog)
    const wire = await upstream.asked()
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
  t.equal(at?.underWay.size, 0)
})
