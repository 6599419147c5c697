import { once } from 'node:events'
import {
  connect as connectHttp2,
  constants,
  type ClientHttp2Session,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t from 'tap'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import { turn } from '../../../src/base/clock.ts'
import type { Incoming, Sink, WireReply } from '../../../src/http/exchange/exchange.ts'
import { limits } from '../../../src/http/server/limits.ts'
import {
  listenSecurely,
  type ListenerOptions,
  type SecureListener,
  type ServingCredentials,
} from '../../../src/http/server/listener.ts'
import { openStream } from '../../kit/http2.ts'
import {
  aborted,
  scriptedReply,
  get,
  provenAs,
  wholeReply,
  textOf,
  upgrading,
} from '../../kit/listener.ts'
import { setClock } from '../../kit/set-clock.ts'
import { Wire, valuesOf, type Teardown } from '../../kit/wire/wire.ts'
import { inTime, until } from '../../kit/until.ts'

const hubs = await CertificateAuthority.create('hub')
const clients = await CertificateAuthority.create('clients')

const serving = async (lifetimeMs?: number): Promise<ServingCredentials> => ({
  ...(await hubs.issue({
    commonName: 'hub',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
    ...(lifetimeMs !== undefined && { lifetimeMs }),
  })),
  clientCa: clients.certificate,
})

interface Listening {
  readonly listener: SecureListener
  readonly seen: readonly Incoming[]
  readonly broken: readonly unknown[]
  readonly http2: (shown?: Shown) => ClientHttp2Session
  readonly http1: (shown?: Shown) => Promise<Wire>
}

interface Shown {
  readonly certificate: string
  readonly key: string
}

async function listening(
  t: Teardown,
  handler: ListenerOptions['handler'],
  options: Partial<ListenerOptions> = {},
): Promise<Listening> {
  const seen: Incoming[] = []
  const broken: unknown[] = []
  const listener = await listenSecurely({
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 100,
    credentials: await serving(),
    onBroken: (cause) => broken.push(cause),
    handler: (incoming) => {
      seen.push(incoming)
      return handler(incoming)
    },
    ...options,
  } as Parameters<typeof listenSecurely>[0])
  t.teardown(() => listener.close(0))
  const trust = (shown?: Shown) => ({
    ca: hubs.certificate,
    ...(shown && { cert: shown.certificate, key: shown.key }),
  })
  return {
    listener,
    seen,
    broken,
    http2: (shown) => {
      const session = connectHttp2(`https://127.0.0.1:${listener.port}`, trust(shown))
      session.on('error', () => undefined)
      t.teardown(() => session.destroy())
      return session
    },
    http1: async (shown) => {
      const socket = connectTls({
        host: '127.0.0.1',
        port: listener.port,
        ALPNProtocols: ['http/1.1'],
        ...trust(shown),
      })
      t.teardown(() => socket.destroy())
      await once(socket, 'secureConnect')
      return new Wire(socket)
    },
  }
}

void t.test('clients choose between HTTP/2 and HTTP/1.1', async (t) => {
  const { http1, http2, seen } = await listening(t, async ({ url }) => wholeReply(url))
  t.equal((await openStream(http2(), { ':path': '/two' }).whole()).body, '/two')
  t.equal((await (await http1()).write(get('/one')).answer()).body, '/one')
  t.strictSame(
    seen.map(({ peer }) => peer.tls),
    [{ withoutCertificate: true }, { withoutCertificate: true }],
  )
  const inodes = seen.map(({ peer }) => peer.inode)
  for (const inode of inodes) t.match(inode, process.platform === 'linux' ? /^\d+$/ : undefined)
  t.equal(new Set(inodes).size, process.platform === 'linux' ? 2 : 1, 'of each its own socket')
})

void t.test('one address may have another certificate, over either protocol', async (t) => {
  const cluster = await CertificateAuthority.create('cluster')
  const issued = () =>
    cluster.issue({
      commonName: 'hub',
      usage: 'server',
      ipAddresses: ['127.0.0.2'],
      lifetimeMs: 3_600_000,
    })
  const [own, first, second] = [await serving(), await issued(), await issued()]
  const { listener, http1 } = await listening(t, async ({ url }) => wholeReply(url), {
    at: ['127.0.0.1', '127.0.0.2'].map((host) => ({ host, port: 0 })),
  })
  const { port } = listener
  const shownAt = async (host: string, ca: string, protocol = 'http/1.1'): Promise<string> => {
    const socket = connectTls({ host, port, ca, ALPNProtocols: [protocol] })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    if (protocol === 'http/1.1')
      t.equal((await new Wire(socket).write(get('/there')).answer()).body, '/there')
    else {
      const session = connectHttp2(`https://${host}:${port}`, { createConnection: () => socket })
      t.equal((await openStream(session, { ':path': '/there' }).whole()).body, '/there')
    }
    return socket.getPeerX509Certificate()?.toString() ?? ''
  }
  await t.rejects(shownAt('127.0.0.2', cluster.certificate), 'until it has one')
  for (const { certificate, key } of [first, second]) {
    listener.replaceCredentials({ ...own, elsewhere: { address: '127.0.0.2', certificate, key } })
    for (const protocol of ['http/1.1', 'h2'])
      t.equal(await shownAt('127.0.0.2', cluster.certificate, protocol), certificate)
    t.equal((await (await http1()).write(get('/one')).answer()).body, '/one', 'at the other one')
  }
  listener.replaceCredentials(own)
  await t.rejects(shownAt('127.0.0.2', cluster.certificate), 'when it is taken back')
})

void t.test('a request over HTTP/2 reaches the handler like one over HTTP/1.1', async (t) => {
  const { http2, seen, listener } = await listening(t, async (incoming) =>
    wholeReply(await textOf(incoming)),
  )
  const session = http2()
  const stream = openStream(
    session,
    { ':method': 'POST', ':path': '/a%2Fb//c?x=%zz', 'x-b': ['1', '2'], 'content-length': '3' },
    'abc',
  )
  t.equal((await stream.whole()).body, 'abc')
  const [incoming] = seen
  t.equal(incoming?.method, 'POST')
  t.equal(incoming?.url, '/a%2Fb//c?x=%zz')
  t.equal(incoming?.upgrade, false)
  t.strictSame(incoming?.headers.all('host'), [`127.0.0.1:${listener.port}`])
  t.strictSame(incoming?.headers.all('x-b'), ['1', '2'])
  t.notOk(incoming?.headers.raw.some((field) => field.startsWith(':')))
  await openStream(session, {}).whole()
  t.equal(seen[1]?.body, undefined, 'nothing follows a head that says so')
  t.equal(seen[1]?.peer, seen[0]?.peer, 'the other end is the same for the whole connection')
  t.equal(incoming?.peer.localPort, listener.port)
})

void t.test('a request over HTTP/2 that names two hosts is refused', async (t) => {
  const { http2, seen } = await listening(t, async () => wholeReply('ok'))
  const answer = await openStream(http2(), { ':authority': 'hub', host: 'elsewhere' }).whole()
  t.equal(answer.status, 400)
  t.match(JSON.parse(answer.body), { kind: 'Status', code: 400 })
  t.equal(seen.length, 0)
})

void t.test('an answer over HTTP/2 leaves without hop-by-hop fields', async (t) => {
  const { http2 } = await listening(t, async () =>
    scriptedReply(
      (sink) => {
        sink.write(Buffer.from('a'))
        sink.end(['X-Trailing', '1'])
      },
      'Warning',
      '299 - "a"',
      'Warning',
      '299 - "b"',
      'Content-Type',
      'x/y',
      'Connection',
      'X-Hop',
      'X-Hop',
      '1',
      'Keep-Alive',
      'timeout=5',
      'Transfer-Encoding',
      'chunked',
    ),
  )
  const answer = await openStream(http2(), {}).whole()
  t.strictSame(answer.fields, [
    'warning',
    '299 - "a"',
    'warning',
    '299 - "b"',
    'content-type',
    'x/y',
  ])
  t.equal(answer.body, 'a')
  t.equal(answer.trailers['x-trailing'], '1')
})

void t.test(
  'over HTTP/2 an answer that its client does not take is cut, though the client takes others and pings',
  async (t) => {
    const cuts: string[] = []
    const { http2, seen } = await listening(
      t,
      provenAs(async ({ url }) =>
        scriptedReply((sink) => {
          sink.write(Buffer.from('x'))
          if (url === '/stalled') sink.write(Buffer.alloc(100 * 1024))
          else if (url === '/read') sink.end()
        }),
      ),
      { stalledMs: 200, onCut: (why) => cuts.push(why) },
    )
    const session = http2()
    const waiting = session.request({ ':path': '/waiting' })
    await once(waiting, 'data')
    const stalled = session.request({ ':path': '/stalled' })
    stalled.on('error', () => undefined)
    await once(stalled, 'response')
    await until('the stream that reads nothing to be cut', async () => {
      await new Promise((answered) => session.ping(answered))
      await openStream(session, { ':path': '/read' }).whole()
      return seen[1]?.signal.aborted !== false
    })
    t.strictSame(cuts, ['stalled'])
    t.equal(seen[0]?.signal.aborted, false)
  },
)

void t.test('an idle HTTP/2 connection makes room for another', async (t) => {
  const { http2 } = await listening(t, async () => wholeReply('ok'), { maxConnections: 1 })
  const first = http2()
  t.equal((await openStream(first, { ':path': '/' }).whole()).body, 'ok')
  const gone = once(first, 'close')
  t.equal((await openStream(http2(), { ':path': '/' }).whole()).body, 'ok')
  await gone
})

void t.test('answers without a body have none over HTTP/2', async (t) => {
  const { http2 } = await listening(t, async ({ url }) => ({
    ...wholeReply('body'),
    status: Number(url.slice(1)),
  }))
  const session = http2()
  const head = await openStream(session, { ':method': 'HEAD', ':path': '/200' }).whole()
  t.strictSame([head.status, head.body, head.fields], [200, '', ['content-length', '4']])
  t.equal((await openStream(session, { ':path': '/304' }).whole()).body, '')
})

void t.test('a client over HTTP/2 that sends Expect: 100-continue gets 100', async (t) => {
  const { http2 } = await listening(t, async (incoming) => wholeReply(await textOf(incoming)))
  const stream = http2().request({ ':method': 'POST', expect: '100-continue' })
  await once(stream, 'continue')
  stream.end('abc')
  await once(stream, 'response')
  t.equal(String(await once(stream, 'data')), 'abc')
})

void t.test('an answer that fails ends its stream with INTERNAL_ERROR', async (t) => {
  const { http2, broken } = await listening(t, async () =>
    scriptedReply((sink) => {
      sink.write(Buffer.from('part'))
      setImmediate(() => sink.fail(new Error('upstream gone')))
    }),
  )
  await t.rejects(openStream(http2(), {}).whole(), /INTERNAL_ERROR/)
  t.match(broken, [{ message: 'upstream gone' }])
})

void t.test('a handler that throws ends its stream alone', async (t) => {
  const { http2 } = await listening(t, async ({ url }) => {
    if (url === '/bad') throw new Error('oh')
    return wholeReply('ok')
  })
  const session = http2()
  await t.rejects(openStream(session, { ':path': '/bad' }).whole(), /INTERNAL_ERROR/)
  t.equal((await openStream(session, { ':path': '/good' }).whole()).body, 'ok')
})

void t.test('an unread body does not keep an answered stream open', async (t) => {
  const { http2, seen } = await listening(t, async () => wholeReply('no'))
  const stream = http2().request({ ':method': 'POST' })
  stream.write('for ever')
  await once(stream, 'response')
  await aborted(seen[0]?.signal ?? AbortSignal.abort())
  stream.resume()
  await once(stream, 'close')
  t.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
})

const kubelets = await clients.issue({
  commonName: 'system:node:edge-1',
  organizations: ['system:nodes'],
  usage: 'client',
})

/**
 * What a kubelet sends for each Secret and ConfigMap that its pods mount, with a token where it has
 * no certificate.
 */
const watchOf = (n: number, fields: OutgoingHttpHeaders = {}): OutgoingHttpHeaders => ({
  ':path': `/api/v1/namespaces/default/secrets?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dsecret-${n}&resourceVersion=123456&watch=true`,
  accept: 'application/vnd.kubernetes.protobuf,application/json',
  'user-agent': 'kubelet/v1.36.0 (linux/amd64) kubernetes/0123456',
  ...fields,
})

for (const [whose, shown, fields] of [
  ['a kubelet with its certificate', kubelets, {}],
  ['a caller that proves its token', undefined, { authorization: `Bearer ${'x'.repeat(1_200)}` }],
] as const) {
  void t.test(
    `as many watches as a connection may carry begin on one at once: ${whose}`,
    async (t) => {
      const { http2, seen } = await listening(
        t,
        provenAs(async () => scriptedReply((sink) => void sink.write(Buffer.alloc(1_000)))),
      )
      const session = http2(shown)
      const heads = Array.from({ length: limits.streams }, (_, n) =>
        openStream(session, watchOf(n, fields)).head(),
      )
      t.strictSame(
        new Set((await Promise.all(heads)).map((head) => head[':status'])),
        new Set([200]),
      )
      t.equal(new Set(seen.map(({ peer }) => peer)).size, 1)
    },
  )
}

void t.test(
  'a connection carries few requests at a time until a caller is proven on it',
  async (t) => {
    const { http2 } = await listening(t, async (incoming) =>
      incoming.url === '/known'
        ? provenAs(async () => wholeReply('ok'))(incoming)
        : wholeReply('no'),
    )
    const told: (number | undefined)[] = []
    const session = http2()
    session.on('remoteSettings', ({ maxConcurrentStreams }) => told.push(maxConcurrentStreams))
    await openStream(session, { ':path': '/unknown' }).whole()
    t.strictSame(told, [limits.unprovenStreams])
    const more = once(session, 'remoteSettings')
    await openStream(session, { ':path': '/known' }).whole()
    await more
    t.strictSame(told, [limits.unprovenStreams, limits.streams])
    const certified = http2(kubelets)
    await once(certified, 'remoteSettings')
    t.equal(certified.remoteSettings.maxConcurrentStreams, limits.streams)
  },
)

void t.test('a certificate that the client CA has signed identifies the caller', async (t) => {
  const { http1, http2, seen } = await listening(t, async () => wholeReply('ok'))
  const good = await clients.issue({
    commonName: 'system:node:edge-1',
    organizations: ['system:nodes', 'more'],
    usage: 'client',
  })
  const named = {
    certificate: { commonName: 'system:node:edge-1', organizations: ['system:nodes', 'more'] },
  }
  await openStream(http2(good), {}).whole()
  await (await http1(good)).write(get()).answer()
  t.match(
    seen.map(({ peer }) => peer.tls),
    [named, named],
  )
  t.ok((seen[0]?.peer.tls?.certificate?.validTo ?? 0) > Date.now())
})

void t.test('any other certificate counts as none', async (t) => {
  const { http2, seen } = await listening(t, async () => wholeReply('ok'))
  const request = { commonName: 'system:node:edge-1', organizations: ['system:nodes'] }
  const foreign = await (
    await CertificateAuthority.create('clients')
  ).issue({ ...request, usage: 'client' })
  const servers = await clients.issue({ ...request, usage: 'server' })
  const ofTheHubs = await hubs.issue({ ...request, usage: 'client' })
  for (const shown of [foreign, servers, ofTheHubs]) await openStream(http2(shown), {}).whole()
  t.strictSame(
    seen.map(({ peer }) => peer.tls),
    [{}, {}, {}],
  )
  // One that is none at other addresses, too: out-of-date-certificate.test.ts.
  await openStream(
    http2(await clients.issue({ ...request, usage: 'client', lifetimeMs: -1_000 })),
    {},
  ).whole()
  t.strictSame(Object.keys(seen.at(-1)?.peer.tls ?? {}), ['outOfDate'], 'nor is one that has ended')
})

void t.test('an upgrade handler over TLS gets the connection', async (t) => {
  const { http1 } = await listening(t, async () => ({
    kind: 'upgrade',
    from: 'cloud',
    take: (socket) => void socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\nhello'),
  }))
  const client = await http1()
  client.write(get('/', 'Connection: Upgrade', 'Upgrade: websocket'))
  t.equal(await client.rest(), 'HTTP/1.1 101 Switching Protocols\r\n\r\nhello')
})

void t.test('an unparsable request over TLS is refused with 400', async (t) => {
  const { http1 } = await listening(t, async () => wholeReply('ok'))
  const answer = await (await http1()).write('nonsense\r\n\r\n').answer()
  t.equal(answer.status, 400)
  t.strictSame(valuesOf(answer, 'connection'), ['close'])
})

void t.test('a client without TLS gets no answer', async (t) => {
  const { listener, seen } = await listening(t, async () => wholeReply('ok'))
  const client = new Wire(connectPlain(listener.port, '127.0.0.1'))
  t.notMatch(await client.write(get()).rest(), /HTTP/)
  t.equal(seen.length, 0)
})

void t.test('new certificates are shown to new connections, and old ones go on', async (t) => {
  const { listener, http2 } = await listening(t, async () => wholeReply('ok'))
  const serial = (session: ClientHttp2Session): string =>
    (session.socket as TLSSocket).getPeerCertificate().serialNumber
  const old = http2()
  await openStream(old, {}).whole()
  listener.replaceCredentials(await serving())
  const fresh = http2()
  await openStream(fresh, {}).whole()
  t.not(serial(fresh), serial(old))
  t.equal((await openStream(old, {}).whole()).body, 'ok')
})

void t.test('a CA that is added for clients ends no connection', async (t) => {
  const { listener, http1, http2, seen } = await listening(t, async () => wholeReply('ok'))
  const kubelet = await clients.issue({ commonName: 'system:node:edge-1', usage: 'client' })
  const [session, idle] = [http2(kubelet), await http1(kubelet)]
  await openStream(session, {}).whole()
  await idle.write(get()).answer()
  const clock = setClock(t, { once: true })
  const others = await CertificateAuthority.create('other clients')
  const clientCa = others.certificate + clients.certificate
  listener.replaceCredentials({ ...(await serving()), clientCa })
  clock.forward(limits.withdrawnMs)
  await turn()
  t.equal((await openStream(session, {}).whole()).body, 'ok')
  await idle.write(get()).answer()
  const newcomer = await others.issue({ commonName: 'system:node:edge-1', usage: 'client' })
  await openStream(http2(newcomer), {}).whole()
  t.match(
    seen.map(({ peer }) => peer.tls?.certificate?.commonName),
    Array(5).fill('system:node:edge-1'),
  )
})

void t.test(
  'a replaced client CA ends idle connections, and busy ones after their answers',
  async (t) => {
    const sinks: Sink[] = []
    const { listener, http1, http2, seen } = await listening(t, async ({ url }) =>
      url === '/watch' ? scriptedReply((sink) => void sinks.push(sink)) : wholeReply('ok'),
    )
    const kubelet = await clients.issue({ commonName: 'system:node:edge-1', usage: 'client' })
    const [session, idle, busy] = [http2(kubelet), await http1(kubelet), await http1(kubelet)]
    const watch = openStream(session, { ':path': '/watch' })
    await watch.head()
    await idle.write(get()).answer()
    busy.write(get('/watch'))
    await until('two answers to begin', () => sinks.length >= 2)
    const asked = seen.length
    const goaway = once(session, 'goaway')
    const others = await CertificateAuthority.create('other clients')
    listener.replaceCredentials({ ...(await serving()), clientCa: others.certificate })
    await goaway
    t.equal(await idle.rest(), '')
    for (const sink of sinks) {
      sink.write(Buffer.from('an event'))
      sink.end()
    }
    t.equal((await watch.whole()).body, 'an event', 'what was under way goes on to its end')
    busy.write(get())
    await busy.rest()
    t.equal(seen.length, asked)
    await openStream(http2(kubelet), {}).whole()
    t.strictSame(seen.at(-1)?.peer.tls, {})
  },
)

void t.test(
  'requests proven by a replaced client CA go on for half a minute at most',
  async (t) => {
    const signals: AbortSignalLike[] = []
    const upgraded: WireReply = {
      kind: 'upgrade',
      from: 'cloud',
      take: (socket) => void socket.write('a tunnel'),
    }
    const answering: ListenerOptions['handler'] = async ({ upgrade, signal }) => {
      signals.push(signal)
      if (upgrade) return upgraded
      return scriptedReply((sink) => void sink.write(Buffer.from('an event')))
    }
    const { listener, http1, http2 } = await listening(t, answering)
    const kubelet = await clients.issue({ commonName: 'system:node:edge-1', usage: 'client' })
    const session = http2(kubelet)
    await openStream(session, { ':path': '/watch' }).head()
    const [watch, tunnel] = [await http1(kubelet), await http1(kubelet)]
    await watch.write(get('/watch')).until('an event')
    await tunnel.write(upgrading).until('a tunnel')
    await openStream(http2(), { ':path': '/watch' }).head()
    const clock = setClock(t, { once: true })
    const others = await CertificateAuthority.create('other clients')
    listener.replaceCredentials({ ...(await serving()), clientCa: others.certificate })
    const later = openStream(http2(), { ':path': '/watch' })
    await later.head()
    clock.forward(limits.withdrawnMs - 1)
    await turn()
    t.notOk(watch.socket.destroyed || tunnel.socket.destroyed)
    t.notOk(signals.some(({ aborted }) => aborted))
    clock.forward(1)
    const cuts = Promise.all([watch.closed, tunnel.closed, once(session, 'close')])
    await inTime('all three to be cut', cuts, { seconds: 10 })
    const cut = (): number => signals.filter(({ aborted }) => aborted).length
    await until('the answers to end', () => cut() === 3)
    t.notOk(signals.at(3)?.aborted, 'a token is not of these authorities')
    t.notOk(signals.at(4)?.aborted, 'nor is who came later')
    t.equal(limits.withdrawnMs, 30_000)
  },
)
