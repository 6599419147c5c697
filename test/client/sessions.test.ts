import { once } from 'node:events'
import { constants, type Http2Session } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import type { Dispatcher } from 'undici'
import { turn } from '../../src/base/clock.ts'
import { Connections } from '../../src/client/connections.ts'
import { usualPace, type Pace } from '../../src/client/pace.ts'
import type { Credential } from '../../src/exchange/exchange.ts'
import { authority, type Pair } from '../kit/wire/certificates.ts'
import { h2Upstream, type H2Options, type H2Upstream } from '../kit/wire/h2-upstream.ts'
import { answerOf, rawUpstream, refusingOrigin } from '../kit/wire/upstream.ts'
import { link } from '../kit/wire/link.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const pki = authority()
const serving = pki.server()
const first = pki.client('first-node')
const second = pki.client('second-node')

function connectionsOf(t: Teardown, pace: Partial<Pace> = {}, pair: Pair = first): Connections {
  const connections = new Connections(pki.credentials(pair), { ...usualPace, ...pace })
  t.teardown(() => connections[Symbol.asyncDispose]())
  return connections
}

const upstreamOf = (t: Teardown, options: Partial<H2Options> = {}): Promise<H2Upstream> =>
  h2Upstream(t, { ...serving, ca: pki.ca, ...options })

/** How many connections are open: of HTTP/1.1, and of HTTP/2. */
const opened = (connections: Connections, { origin }: H2Upstream): number[] =>
  (['http/1.1', 'h2'] as const).map((protocol) => connections.open(origin, protocol))

/** A watch as its asker sees it. */
class Watch implements Dispatcher.DispatchHandler {
  controller: Dispatcher.DispatchController | undefined
  fields: string[] = []
  body = ''
  readonly head = Promise.withResolvers<number>()
  readonly over = Promise.withResolvers<'end' | NodeJS.ErrnoException>()
  #wake: (() => void) | undefined

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.fields = controller.rawHeaders as string[]
    this.head.resolve(status)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.body += chunk.toString()
    this.#wake?.()
  }

  onResponseEnd(): void {
    this.over.resolve('end')
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.over.resolve(error)
  }

  /** Resolves when so much has come. */
  async until(length: number): Promise<void> {
    while (this.body.length < length) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async code(): Promise<string | undefined> {
    const outcome = await this.over.promise
    return outcome === 'end' ? outcome : outcome.code
  }
}

const watch = (
  connections: Connections,
  origin: string,
  { credential = 'node', headers = [] }: { credential?: Credential; headers?: string[] } = {},
): Watch => {
  const watch = new Watch()
  const request = { method: 'GET', path: '/watch?a=b', headers, body: null, long: true } as const
  connections.dispatch(credential, origin, request, watch)
  return watch
}

/** The answer to a short request. */
async function shortly(connections: Connections, { origin }: H2Upstream): Promise<string> {
  const asked = new Watch()
  connections.dispatch('node', origin, { method: 'GET', path: '/', headers: [], body: null }, asked)
  await asked.over.promise
  return asked.body
}

/** A watch that the server has answered with its head and one event. */
async function running(connections: Connections, upstream: H2Upstream) {
  const asked = watch(connections, upstream.origin)
  const { stream, session } = await upstream.next()
  stream.respond({ ':status': 200 })
  stream.write('event')
  await asked.until(5)
  return { asked, stream, session }
}

void t.test('watches share a connection over HTTP/2, short requests do not', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
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
    const wire = await upstream.next()
    t.equal((await wire.head()).line, 'GET /watch?a=b HTTP/1.1', nth)
    wire.write(`${answerOf('events', 'HTTP/1.1 200 OK\r\nConnection: close')}`)
    t.equal(await asked.code(), 'end')
    t.equal(asked.body, 'events')
  }
  t.equal(connections.open(upstream.origin, 'h2'), 0)
  t.equal(upstream.connections.length, 2)
})

void t.test('the head goes up as HTTP/2 has it, and comes back as it was sent', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
  const asked = watch(connections, upstream.origin, {
    headers: [
      'Host',
      'elsewhere',
      'Accept',
      'a',
      'ACCEPT',
      'b',
      'Connection',
      'x-hop',
      'X-Hop',
      'y',
      'TE',
      'gzip',
    ],
  })
  const { stream, fields } = await upstream.next()
  t.strictSame(fields, [
    ':method',
    'GET',
    ':scheme',
    'https',
    ':authority',
    new URL(upstream.origin).host,
    ':path',
    '/watch?a=b',
    'accept',
    'a',
    'accept',
    'b',
  ])
  stream.respond({ ':status': 410, 'x-b': ['2', '1'], 'x-a': '3' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-last': 'trailer' }))
  stream.end('gone')
  t.equal(await asked.head.promise, 410)
  t.equal(await asked.code(), 'end')
  t.equal(asked.body, 'gone')
  t.strictSame(asked.fields.slice(0, 6), ['x-b', '2', 'x-b', '1', 'x-a', '3'])
  t.strictSame(asked.controller?.rawTrailers, ['x-last', 'trailer'])
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

void t.test('a server that allows next to no streams is asked over HTTP/1.1', async (t) => {
  const upstream = await upstreamOf(t, { settings: { maxConcurrentStreams: 1 } })
  const connections = connectionsOf(t)
  const asked = watch(connections, upstream.origin)
  t.equal(await asked.code(), 'end')
  t.equal(asked.body, 'over HTTP/1.1')
  t.equal(connections.open(upstream.origin, 'h2'), 0)
})

void t.test('an abort ends its stream and no other', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t, { idleMs: 10 })
  const one = await running(connections, upstream)
  const other = await running(connections, upstream)
  one.asked.controller?.pause()
  one.stream.write('more')
  await pong(one.session)
  const closed = once(one.stream, 'close')
  const gone = once(one.session, 'close')
  one.asked.controller?.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }))
  t.equal(await one.asked.code(), 'ENOUGH')
  await closed
  t.equal(one.stream.rstCode, constants.NGHTTP2_CANCEL)
  other.stream.end('!')
  t.equal(await other.asked.code(), 'end')
  t.equal(other.asked.body, 'event!')
  // Nothing of either is left that would keep it open.
  await gone
})

void t.test('a watch that nobody reads holds up its server, and no other watch', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
  const stuck = await running(connections, upstream)
  const other = await running(connections, upstream)
  stuck.asked.controller?.pause()
  t.equal(stuck.asked.controller?.paused, true)
  const much = 'x'.repeat(4 * 1024 * 1024)
  const taken = new Promise((resolve) => stuck.stream.end(much, () => resolve(undefined)))
  other.stream.end('y'.repeat(2 * 1024 * 1024))
  t.equal(await other.asked.code(), 'end')
  t.equal(other.asked.body.length, 5 + 2 * 1024 * 1024)
  t.equal(stuck.asked.body.length < 1024 * 1024, true)
  stuck.asked.controller?.resume()
  t.equal(await stuck.asked.code(), 'end')
  t.equal(stuck.asked.body, `event${much}`)
  await taken
})

void t.test('what was sent before the end arrives, however late it is read', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
  const { asked, stream } = await running(connections, upstream)
  asked.controller?.pause()
  stream.end(' and the last')
  await once(stream, 'close')
  asked.controller?.resume()
  t.equal(await asked.code(), 'end')
  t.equal(asked.body, 'event and the last')
})

void t.test('a stream that breaks off is no end', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
  const reset = await running(connections, upstream)
  reset.stream.destroy(new Error('broken'))
  t.equal(await reset.asked.code(), 'STREAM_BROKEN')
  const closed = await running(connections, upstream)
  closed.session.destroy()
  t.equal(await closed.asked.code(), 'STREAM_BROKEN')
  const cut = await running(connections, upstream)
  upstream.sockets.at(-1)?.destroy()
  t.equal(await cut.asked.code(), 'STREAM_BROKEN')
  t.equal(upstream.sessions.length, 2)
})

void t.test(
  'after GOAWAY a watch comes to its end, and the next goes to a new session',
  async (t) => {
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t)
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

void t.test(
  'a refused stream goes to the server once more, and is then known never to have been seen',
  async (t) => {
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t)
    const again = watch(connections, upstream.origin)
    ;(await upstream.next()).stream.close(constants.NGHTTP2_REFUSED_STREAM)
    const { stream } = await upstream.next()
    stream.respond({ ':status': 200 })
    stream.end('seen')
    t.equal(await again.code(), 'end')
    t.equal(again.body, 'seen')
    const refused = watch(connections, upstream.origin)
    for (let i = 0; i < 2; i++)
      (await upstream.next()).stream.close(constants.NGHTTP2_REFUSED_STREAM)
    t.equal(await refused.code(), 'STREAM_REFUSED')
  },
)

void t.test('a stream beyond the last of a GOAWAY goes to a new session', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
  const { session, asked: old, stream: kept } = await running(connections, upstream)
  const asked = watch(connections, upstream.origin)
  const missed = await upstream.next()
  t.equal(missed.session, session)
  session.goaway(constants.NGHTTP2_NO_ERROR, kept.id)
  const { stream, session: fresh } = await upstream.next()
  t.not(fresh, session)
  stream.respond({ ':status': 200 })
  stream.end('seen')
  t.equal(await asked.code(), 'end')
  kept.end()
  t.equal(await old.code(), 'end')
})

void t.test('where there is no connection, the request was never sent', async (t) => {
  const connections = connectionsOf(t)
  const origin = (await refusingOrigin()).replace('http:', 'https:')
  t.equal(await watch(connections, origin).code(), 'NOT_CONNECTED')
})

void t.test(
  'a session that nobody uses is closed, and a silent one that is used stays',
  async (t) => {
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t, { idleMs: 20, pingMs: 10 })
    const { asked, stream, session } = await running(connections, upstream)
    for (let i = 0; i < 5; i++) await pong(session)
    const closed = once(session, 'close')
    stream.end('!')
    t.equal(await asked.code(), 'end')
    await closed
  },
)

void t.test('F27: a silent watch is pinged, so that no NAT forgets it', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t, { pingMs: 10 })
  const { session, asked, stream } = await running(connections, upstream)
  for (let i = 0; i < 3; i++) await once(session, 'ping')
  stream.end()
  t.equal(await asked.code(), 'end')
  t.ok(usualPace.pingMs < 60_000)
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

void t.test('an old session takes no new watches and keeps those it has', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t, { ageMs: [200, 300] })
  const old = await running(connections, upstream)
  let next = await running(connections, upstream)
  while (next.session === old.session) {
    next.stream.end()
    next = await running(connections, upstream)
  }
  old.stream.write('!')
  await old.asked.until(6)
  t.equal(old.session.destroyed, false)
})

const pong = (session: Http2Session): Promise<void> =>
  new Promise((resolve) => void session.ping(() => resolve()))

const nameShown = (socket: TLSSocket | undefined): unknown =>
  socket?.getPeerCertificate().subject?.CN ?? 'nobody'

void t.test('watches of the node and of callers never share a session', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t)
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
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t)
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

void t.test(
  'F22: watches opened with a certificate that has expired end cleanly, over either protocol, once there is a new one',
  async (t) => {
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t, {}, pki.client('expired-node', 0))
    const { asked, session } = await running(connections, upstream)
    const plain = await rawUpstream(t, serving)
    const overPlain = watch(connections, plain.origin)
    const wire = await plain.next()
    await wire.head()
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n')
    await overPlain.until(5)
    const closed = once(session, 'close')
    connections.replaceCredentials(pki.credentials(second))
    t.equal(await asked.code(), 'end')
    t.equal(await overPlain.code(), 'end')
    await closed
    await wire.ended
    t.equal((await running(connections, upstream)).asked.body, 'event')
  },
)

void t.test(
  'over HTTP/1.1, too, a watch outlives the replacement of a certificate that has not expired',
  async (t) => {
    const upstream = await rawUpstream(t, serving)
    const connections = connectionsOf(t)
    const asked = watch(connections, upstream.origin)
    const wire = await upstream.next()
    await wire.head()
    connections.replaceCredentials(pki.credentials(second))
    wire.write(answerOf('event'))
    t.equal(await asked.code(), 'end')
    t.equal(asked.body, 'event')
  },
)

void t.test(
  'a head that HTTP/2 cannot carry goes over HTTP/1.1, and holds up no other',
  async (t) => {
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t)
    const odd = watch(connections, upstream.origin, {
      headers: ['User-Agent', 'a', 'User-Agent', 'b'],
    })
    const usual = await running(connections, upstream)
    t.equal(await odd.code(), 'end')
    t.equal(odd.body, 'over HTTP/1.1')
    t.equal(usual.asked.body, 'event')
  },
)

void t.test('connections over HTTP/1.1 grow old, too', async (t) => {
  const upstream = await upstreamOf(t)
  const connections = connectionsOf(t, { ageMs: [1, 2] })
  await shortly(connections, upstream)
  while (upstream.sockets.length < 2) {
    // The connection is free again once the loop has turned.
    await turn()
    await shortly(connections, upstream)
  }
  const [old] = upstream.sockets
  if (old?.closed === false) await once(old, 'close')
  t.equal(upstream.sockets.length, 2)
})

void t.test(
  'F14: connections to an upstream that is asked no more are closed, its watches ended',
  async (t) => {
    const upstream = await upstreamOf(t)
    const connections = connectionsOf(t)
    const { asked, session } = await running(connections, upstream)
    const closed = once(session, 'close')
    connections.drop(upstream.origin)
    t.equal(await asked.code(), 'end')
    await closed
    const next = await running(connections, upstream)
    t.not(next.session, session)
  },
)
