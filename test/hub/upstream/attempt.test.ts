import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { constants } from 'node:http2'
import { connect, createServer, type Socket } from 'node:net'
import t from 'tap'
import { Connections } from '../../../src/http/client/connections.ts'
import { bodyOf, Chunks } from '../../../src/http/exchange/chunks.ts'
import type { UpstreamReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { attempt, NoAnswer } from '../../../src/hub/upstream/attempt.ts'
import { Upstream } from '../../../src/hub/upstream/upstream.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { authority } from '../../kit/wire/certificates.ts'
import { h2Upstream } from '../../kit/wire/h2-upstream.ts'
import { answerOf, rawUpstream, refusingOrigin, type RawUpstream } from '../../kit/wire/upstream.ts'
import type { Teardown, Wire } from '../../kit/wire/wire.ts'
import { patientRules, Probes } from './probes.ts'
import { relay } from './relay.ts'
import { portOf } from '../../kit/wire/listening.ts'

interface Attempted {
  readonly reply: Promise<UpstreamReply>
  readonly wire: Wire
  readonly silence: () => Promise<void>
}

const headers = new HeaderList()
const waiting = { isInVain: () => Promise.resolve(false), traffic: { receivedBytes: 0 } }

const upstreamAt = (origin: string, { probe } = new Probes()): Upstream =>
  new Upstream(origin, probe, patientRules, { onHealth: () => undefined })

/** A GET on its way to a server. */
function start(t: Teardown, origin: string, repeatable = false) {
  const connections = new Connections({ files: [] })
  const probes = new Probes()
  const upstream = upstreamAt(origin, probes)
  t.teardown(async () => {
    upstream.close()
    await connections[Symbol.asyncDispose]()
  })
  const exchange = exchangeOf('/')
  const reply = attempt({ exchange, headers, repeatable, ...waiting }, upstream, connections)
  reply.catch(() => undefined)
  /** Lets the upstream be found unresponsive. */
  const silence = async (): Promise<void> => {
    await upstream.probe()
    probes.set(origin, 'late')
    await upstream.probe()
  }
  return { reply, silence }
}

/** A GET that a server has read, with no reader yet for the answer. */
async function begin(t: Teardown, server: RawUpstream, repeatable = false): Promise<Attempted> {
  const started = start(t, server.origin, repeatable)
  return { ...started, wire: await server.asked() }
}

async function textOf(reply: UpstreamReply): Promise<string> {
  let text = ''
  for await (const chunks of new Chunks(bodyOf(reply)))
    for (const chunk of chunks) text += Buffer.from(chunk).toString()
  return text
}

void t.test('an upstream does not run far ahead of a reader yet to come', async (t) => {
  const { reply, wire } = await begin(t, await rawUpstream(t))
  const body = 'x'.repeat(40 * 1024 * 1024)
  wire.write(answerOf(body))
  const answer = await reply
  const socket = wire.socket as Socket
  for (let before = -1; before !== socket.writableLength;) {
    before = socket.writableLength
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.ok(socket.writableLength > 0, 'not all of it was taken')
  t.equal((await textOf(answer)).length, body.length)
})

void t.test('silence gives a request up before its answer, and not after it', async (t) => {
  const server = await rawUpstream(t)
  const first = await begin(t, server, true)
  await first.silence()
  const error = await first.reply.catch((error: unknown) => error)
  t.type(error, NoAnswer)
  t.match(error, { sent: true, cause: { code: 'UNRESPONSIVE' } })
  const second = await begin(t, server, true)
  second.wire.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc')
  const answer = await second.reply
  await second.silence()
  second.wire.write('def')
  t.equal(await textOf(answer), 'abcdef')
})

const pki = await authority()

/** Passes connections on to `port`, once it is opened. */
async function gate(
  t: Teardown,
  port: number,
): Promise<{ origin: string; arrived: Promise<unknown>; open(): Promise<unknown> }> {
  const held: Socket[] = []
  const server = createServer((socket) => void held.push(socket.on('error', () => undefined)))
  return {
    origin: `https://127.0.0.1:${await portOf(t, server)}`,
    arrived: once(server, 'connection'),
    open: () =>
      Promise.all(
        held.map(async (near) => {
          const far = connect(port, '127.0.0.1').on('error', () => near.destroy())
          near.pipe(far).pipe(near)
          t.teardown(() => far.destroy())
          await once(near, 'end')
        }),
      ),
  }
}

void t.test(
  'a body sent to the next upstream is not lost when the first connects late',
  async (t) => {
    const late = await rawUpstream(t, await pki.server())
    const closed = await gate(t, late.port)
    const good = await rawUpstream(t)
    const hub = await relay(t, [closed.origin, good.origin], {
      credentials: { ca: pki.ca, files: [] },
    })
    const client = await hub.ask('POST /x HTTP/1.1\r\nHost: hub\r\nContent-Length: 8\r\n\r\nhalf')
    await closed.arrived
    hub.probes.set(closed.origin, 'bad')
    await hub.cloud.upstreams[0]?.probe()
    await hub.cloud.upstreams[0]?.probe()
    const wire = await good.asked()
    t.equal(await wire.take(4), 'half')
    await closed.open()
    client.write('more')
    t.equal(await wire.take(4), 'more')
    wire.write(answerOf('done'))
    t.equal((await client.answer()).body, 'done')
  },
)

void t.test('a request that may not be repeated is given up while it is unsent', async (t) => {
  const closed = await gate(t, 0)
  const { reply, silence } = start(t, closed.origin)
  await closed.arrived
  await silence()
  await t.rejects(reply, { code: 'NO_ANSWER', sent: false, cause: { code: 'UNRESPONSIVE' } })
})

void t.test('a request counts as sent, whatever error ends its connection', async (t) => {
  const sockets: Socket[] = []
  const onSocket = (message: unknown): void =>
    void sockets.push((message as { readonly socket: Socket }).socket)
  subscribe('net.client.socket', onSocket)
  t.teardown(() => unsubscribe('net.client.socket', onSocket))
  // As the kernel reports a route that is lost meanwhile (tcp(7)), and what TLS may find later.
  for (const code of ['EHOSTUNREACH', 'ENETUNREACH', 'ECONNREFUSED', 'CERT_HAS_EXPIRED']) {
    const { reply } = await begin(t, await rawUpstream(t))
    sockets.at(-1)?.destroy(Object.assign(new Error(code), { code }))
    await t.rejects(reply, { code: 'NO_ANSWER', sent: true, cause: { code } }, code)
  }
})

void t.test('whatever fails before a connection is made, nothing was sent', async (t) => {
  const server = await rawUpstream(t)
  const { reply } = start(t, server.origin.replace('http:', 'https:'))
  const wire = await server.next()
  await wire.take(1) // of TLS
  wire.reset()
  await t.rejects(reply, { code: 'NO_ANSWER', sent: false, cause: { code: 'ECONNRESET' } })
})

void t.test('an answer in an unknown transfer coding counts as none', async (t) => {
  for (const coding of ['oding: chunked', 'gzip, chunked', 'identity']) {
    const { reply, wire } = await begin(t, await rawUpstream(t))
    wire.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n`)
    await t.rejects(reply, { code: 'NO_ANSWER', cause: { code: 'UNKNOWN_FRAMING' } }, coding)
  }
})

void t.test('a held answer is not held for long, nor when it is long', async (t) => {
  const server = await rawUpstream(t)
  const slow = await begin(t, server, true)
  slow.wire.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc')
  const trickle = await slow.reply
  slow.wire.write('def')
  t.equal(await textOf(trickle), 'abcdef')
  const long = await begin(t, server, true)
  long.wire.write(`HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n${'x'.repeat(99_998)}`)
  const stream = await long.reply
  long.wire.write('y')
  t.equal((await textOf(stream)).length, 99_999)
})

void t.test('an attempt whose client or upstream has gone fails unsent', async (t) => {
  const server = await rawUpstream(t)
  const connections = new Connections({ files: [] })
  t.teardown(() => connections[Symbol.asyncDispose]())
  for (const gone of ['client', 'upstream']) {
    const upstream = upstreamAt(server.origin)
    if (gone === 'upstream') upstream.close()
    const signal = gone === 'client' ? AbortSignal.abort() : new AbortController().signal
    const outgoing = {
      exchange: exchangeOf('/', { signal }),
      headers,
      repeatable: true,
      ...waiting,
    }
    const reply = attempt(outgoing, upstream, connections)
    await t.rejects(reply, { code: 'NO_ANSWER', sent: false }, gone)
    t.equal(upstream.underWay.size, 0)
  }
})

void t.test('over HTTP/2, too, it is known what the server cannot have seen', async (t) => {
  const serving = await pki.server()
  const server = await h2Upstream(t, serving)
  const refusing = (await refusingOrigin()).replace('http:', 'https:')
  const connections = new Connections({ ca: pki.ca, files: [] })
  t.teardown(() => connections[Symbol.asyncDispose]())
  const watch = (origin: string): Promise<UpstreamReply> => {
    const exchange = exchangeOf('/api/v1/pods?watch=1')
    const upstream = upstreamAt(origin)
    t.teardown(() => upstream.close())
    return attempt({ exchange, headers, repeatable: true, ...waiting }, upstream, connections)
  }
  const close = async (code: number): Promise<void> => (await server.next()).stream.close(code)
  await t.rejects(watch(refusing), { code: 'NO_ANSWER', sent: false })
  const refused = t.rejects(watch(server.origin), { code: 'NO_ANSWER', sent: false })
  await close(constants.NGHTTP2_REFUSED_STREAM)
  await refused
  const broken = t.rejects(watch(server.origin), { code: 'NO_ANSWER', sent: true })
  await close(constants.NGHTTP2_INTERNAL_ERROR)
  await broken
})
