import { once } from 'node:events'
import { constants } from 'node:http2'
import { createServer } from 'node:tls'
import t from 'tap'
import { isExpectedFault } from '../../../src/base/expected-fault.ts'
import { defaultTimings } from '../../../src/http/client/connection-timings.ts'
import { link } from '../../kit/wire/link.ts'
import {
  connected,
  connectionsOf,
  pong,
  running,
  serving,
  upstreamOf,
  Watch,
  watch,
} from './watches.ts'
import { inTime, until } from '../../kit/until.ts'
import { portOf } from '../../kit/wire/listening.ts'

void t.test(
  'after GOAWAY a watch comes to its end, and the next goes to a new session',
  async (t) => {
    const { upstream, connections } = await connected(t)
    const old = await running(connections, upstream)
    const told = once(old.session, 'close')
    old.session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1)
    // The frame has been read when what came after it has.
    old.stream.write('!')
    await old.asked.until(6)
    const next = await running(connections, upstream)
    t.not(next.session, old.session)
    t.equal(connections.open(upstream.origin, 'h2'), 2)
    old.stream.end('.')
    t.equal(await old.asked.code(), 'end')
    t.equal(old.asked.body, 'event!.')
    await told
  },
)

void t.test('a refused stream is known never to have been seen', async (t) => {
  const { upstream, connections } = await connected(t)
  const refused = watch(connections, upstream.origin)
  ;(await upstream.next()).stream.close(constants.NGHTTP2_REFUSED_STREAM)
  t.equal(await refused.code(), 'STREAM_REFUSED')
})

void t.test(
  'so is a stream beyond the last of a GOAWAY; the next goes to a new session',
  async (t) => {
    for (const code of [constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_ENHANCE_YOUR_CALM]) {
      const { upstream, connections } = await connected(t)
      const { session, asked: old, stream: kept } = await running(connections, upstream)
      const refused = watch(connections, upstream.origin)
      t.equal((await upstream.next()).session, session)
      session.goaway(code, kept.id)
      t.equal(await refused.code(), 'STREAM_REFUSED')
      t.not((await running(connections, upstream)).session, session)
      kept.end()
      const isOver = code === constants.NGHTTP2_NO_ERROR
      t.equal(await old.code(), isOver ? 'end' : 'STREAM_BROKEN', 'the server may have acted on it')
    }
  },
)

void t.test('a server that closes each connection at once is an expected fault', async (t) => {
  const server = createServer({ ...serving, ALPNProtocols: ['h2'] }, (socket) => socket.end())
  const port = await portOf(t, server)
  const outcome = await watch(connectionsOf(t), `https://127.0.0.1:${port}`).over.promise
  t.match(outcome, { code: 'NOT_CONNECTED', cause: { code: 'CLOSED_AT_ONCE' } })
  t.ok(isExpectedFault(outcome), 'so that it is logged without a stack')
})

void t.test('an idle session is closed, and a silent one with a stream stays', async (t) => {
  const { upstream, connections } = await connected(t, { idleMs: 20, pingMs: 10 })
  const { asked, stream, session } = await running(connections, upstream)
  for (let i = 0; i < 5; i++) await pong(session)
  const closed = once(session, 'close')
  stream.end('!')
  t.equal(await asked.code(), 'end')
  await closed
})

void t.test('F27: a silent watch is pinged, so that no NAT forgets it', async (t) => {
  const { upstream, connections } = await connected(t, { pingMs: 10 })
  const { session, asked, stream } = await running(connections, upstream)
  for (let i = 0; i < 3; i++) await once(session, 'ping')
  stream.end()
  t.equal(await asked.code(), 'end')
  t.ok(defaultTimings.pingMs < 60_000)
})

void t.test('F11: a session that answers no ping is dead, and so are its watches', async (t) => {
  const upstream = await upstreamOf(t)
  const way = await link(t, upstream.port)
  const connections = connectionsOf(t, { pingMs: 10, pongMs: 50 })
  const byLink = { ...upstream, origin: `https://127.0.0.1:${way.port}` }
  const { asked, session } = await running(connections, byLink)
  for (let i = 0; i < 3; i++) await once(session, 'ping')
  way.cut()
  t.equal(await asked.code(), 'STREAM_BROKEN')
  const next = await running(connections, byLink)
  t.not(next.session, session)
})

void t.test('after a session that answers no ping, requests go over new connections', async (t) => {
  const upstream = await upstreamOf(t)
  const way = await link(t, upstream.port)
  const connections = connectionsOf(t, { pingMs: 10, pongMs: 50 })
  const origin = `https://127.0.0.1:${way.port}`
  const get = async (): Promise<string | undefined> => {
    const request = { method: 'GET', path: '/', headers: [] } as const
    const answer = new Watch()
    connections.dispatch('node', origin, request, answer)
    return inTime('an answer', answer.code(), { seconds: 10 })
  }
  const { asked } = await running(connections, { ...upstream, origin })
  t.equal(await get(), 'end')
  t.equal(connections.open(origin, 'http/1.1'), 1)
  way.cut()
  t.equal(await asked.code(), 'STREAM_BROKEN')
  t.equal(await get(), 'end', 'though the pool had one that looks open')
})

void t.test('an old session takes no new watches and keeps those it has', async (t) => {
  const { upstream, connections } = await connected(t, { maxAgeMs: [200, 300] })
  const old = await running(connections, upstream)
  await until('a session of its own', async () => {
    const next = await running(connections, upstream)
    if (next.session === old.session) next.stream.end()
    return next.session !== old.session
  })
  old.stream.write('!')
  await old.asked.until(6)
  t.equal(old.session.destroyed, false)
})
