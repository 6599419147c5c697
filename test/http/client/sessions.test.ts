import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { turn } from '../../../src/base/clock.ts'
import { answerOf, rawUpstream } from '../../kit/wire/upstream.ts'
import {
  connected,
  connectionsOf,
  opened,
  pki,
  running,
  second,
  serving,
  shortly,
  upstreamOf,
  watch,
} from './watches.ts'
import { until } from '../../kit/until.ts'

void t.test('watches share a connection over HTTP/2, short requests do not', async (t) => {
  const { upstream, connections } = await connected(t)
  for (let i = 0; i < 3; i++) await running(connections, upstream)
  t.equal(upstream.sessions.length, 1)
  t.strictSame(opened(connections, upstream), [0, 1])
  t.equal(await shortly(connections, upstream), 'over HTTP/1.1')
  t.strictSame(opened(connections, upstream), [1, 1])
})

void t.test('where the server does not offer HTTP/2, watches go over HTTP/1.1', async (t) => {
  const upstream = await rawUpstream(t, serving)
  const connections = connectionsOf(t)
  for (const nth of ['first', 'second']) {
    const asked = watch(connections, upstream.origin)
    // The first one shows that the server does not offer it.
    if (nth === 'first') t.equal(await (await upstream.next()).rest(), '')
    const wire = await upstream.next()
    t.equal((await wire.head()).line, 'GET /watch?a=b HTTP/1.1', nth)
    wire.write(`${answerOf('events', 'HTTP/1.1 200 OK\r\nConnection: close')}`)
    t.equal(await asked.code(), 'end')
    t.equal(asked.body, 'events')
  }
  t.equal(connections.open(upstream.origin, 'h2'), 0)
})

void t.test(
  'a further connection is opened before the server’s limit of streams is reached',
  async (t) => {
    const upstream = await upstreamOf(t, { settings: { maxConcurrentStreams: 10 } })
    const connections = connectionsOf(t)
    const bySession = new Map<unknown, number>()
    const asked = Array.from({ length: 25 }, () => watch(connections, upstream.origin))
    for (const _ of asked) {
      const { stream, session } = await upstream.next()
      stream.respond({ ':status': 200 })
      stream.write('event')
      bySession.set(session, (bySession.get(session) ?? 0) + 1)
    }
    await Promise.all(asked.map((one) => one.until(5)))
    t.strictSame([...bySession.values()], [9, 9, 7])
    t.equal(connections.open(upstream.origin, 'h2'), 3)
  },
)

void t.test('a server that allows too few streams gets HTTP/1.1', async (t) => {
  const upstream = await upstreamOf(t, { settings: { maxConcurrentStreams: 1 } })
  const connections = connectionsOf(t)
  const asked = watch(connections, upstream.origin)
  t.equal(await asked.code(), 'end')
  t.equal(asked.body, 'over HTTP/1.1')
  t.equal(connections.open(upstream.origin, 'h2'), 0)
})

const nameShown = (socket: TLSSocket | undefined): unknown =>
  socket?.getPeerCertificate().subject?.CN ?? 'nobody'

void t.test('watches of the node and of callers never share a session', async (t) => {
  const { upstream, connections } = await connected(t)
  for (const credential of ['caller', 'node', 'caller', 'node'] as const) {
    watch(connections, upstream.origin, { credential, headers: ['x-by', credential] })
    const { session, headers } = await upstream.next()
    const name = nameShown(upstream.sockets[upstream.sessions.indexOf(session)])
    t.equal(headers['x-by'], credential)
    t.equal(name, credential === 'node' ? 'first-node' : 'nobody')
  }
  t.equal(upstream.sessions.length, 2)
})

void t.test(
  'F22: with a new certificate, new watches go to a new session and the old ones come to their end',
  async (t) => {
    const { upstream, connections } = await connected(t)
    const old = await running(connections, upstream)
    connections.replaceCredentials(pki.credentials(second))
    const next = await running(connections, upstream)
    t.equal(nameShown(upstream.sockets[0]), 'first-node')
    t.equal(nameShown(upstream.sockets[1]), 'second-node')
    t.not(next.session, old.session)
    const closed = once(old.session, 'close')
    old.stream.end('!')
    t.equal(await old.asked.code(), 'end')
    t.equal(old.asked.body, 'event!')
    await closed
  },
)

void t.test('connections over HTTP/1.1 grow old, too', async (t) => {
  const { upstream, connections } = await connected(t, { maxAgeMs: [1, 2] })
  await shortly(connections, upstream)
  await until('a second connection', async () => {
    // The connection is free again once the loop has turned.
    await turn()
    await shortly(connections, upstream)
    return upstream.sockets.length >= 2
  })
  const [old] = upstream.sockets
  if (old?.closed === false) await once(old, 'close')
  t.equal(upstream.sockets.length, 2)
})

void t.test('F14: dropping an upstream closes its connections and ends its watches', async (t) => {
  const { upstream, connections } = await connected(t)
  const { asked, session } = await running(connections, upstream)
  const closed = once(session, 'close')
  connections.drop(upstream.origin)
  t.equal(await asked.code(), 'end')
  await closed
  const next = await running(connections, upstream)
  t.not(next.session, session)
})
