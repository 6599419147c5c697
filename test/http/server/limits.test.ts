/**
 * What happens to clients that take longer, or hold more, than `limits` allow: with low limits, and
 * with the actual figures where the clock can be advanced. Node's own timers cannot be advanced:
 * the tests check their settings, and emit their timeouts.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect as connectPlain, Socket } from 'node:net'
import { mock } from 'node:test'
import { connect as connectSecure, TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { turn } from '../../../src/base/clock.ts'
import type { Handler, Incoming, WireReply } from '../../../src/http/exchange/exchange.ts'
import { limits } from '../../../src/http/server/limits.ts'
import { listen, listenSecurely } from '../../../src/http/server/listener.ts'
import { field, frame, get as whole, getFields, preface } from '../../kit/http2-frames.ts'
import { scriptedReply, get, wholeReply } from '../../kit/listener.ts'
import { setClock } from '../../kit/set-clock.ts'
import { until } from '../../kit/until.ts'
import { dial, Wire } from '../../kit/wire/wire.ts'

/** The code of a reset (RFC 9113 section 7). */
const cancel = Buffer.from('00000008', 'hex')

const hubs = await CertificateAuthority.create('hub')
const credentials = await hubs.issue({
  commonName: 'hub',
  usage: 'server',
  ipAddresses: ['127.0.0.1'],
})

type Answering = Handler<Incoming, WireReply>

const real = { ...limits }

/**
 * Listeners with other limits until the test ends: a plain one and one with TLS, by their ports.
 */
async function starting(
  t: Test,
  others: Partial<Record<keyof typeof limits, number>>,
  handler: Answering = async () => wholeReply('ok'),
): Promise<{ readonly plain: number; readonly secure: number }> {
  Object.assign(limits, real, others)
  t.teardown(() => Object.assign(limits, real))
  const options = {
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 100,
    onBroken: () => undefined,
    handler,
  }
  const plain = await listen(options)
  t.teardown(() => plain.close(0))
  const secure = await listenSecurely({ ...options, credentials })
  t.teardown(() => secure.close(0))
  return { plain: plain.port, secure: secure.port }
}

async function dialSecurely(t: Test, port: number): Promise<TLSSocket> {
  const socket = connectSecure({
    port,
    host: '127.0.0.1',
    ca: hubs.certificate,
    ALPNProtocols: ['h2'],
  })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect')
  return socket
}

void t.test('a TLS handshake that does not come to its end is cut', async (t) => {
  const { secure } = await starting(t, { handshakeMs: 50 })
  const slow = connectPlain({ port: secure, host: '127.0.0.1' }).resume()
  t.teardown(() => slow.destroy())
  // Its end may come as a reset.
  slow.on('error', () => undefined)
  await new Promise((resolve) => slow.once('close', resolve))
  const quick = await dialSecurely(t, secure)
  t.notOk(quick.destroyed, 'one that does is served')
})

void t.test('a connection over HTTP/1.1 that has been idle for long is closed', async (t) => {
  const { plain } = await starting(t, { idleMs: 50 })
  const client = await dial(t, plain)
  client.write(get())
  t.equal((await client.answer()).body, 'ok')
  await client.ended
})

void t.test('a head that does not come to its end is answered 408', async (t) => {
  const { plain } = await starting(t, { headMs: 50 })
  const client = await dial(t, plain)
  client.write('GET / HTTP/1.1\r\nHost: hub\r\n')
  t.equal((await client.answer()).status, 408)
  await client.ended
})

void t.test('the memory of an HTTP/2 session is bounded', async (t) => {
  const streams = real.unprovenStreams
  const heads = Array.from({ length: streams }, (_, i) =>
    frame(1, 5, 2 * i + 1, Buffer.concat([getFields, field(14_000)])),
  )
  const served = async (sessionMegabytes: number): Promise<number> => {
    let asked = 0
    const { secure } = await starting(t, { sessionMegabytes }, () => {
      asked++
      return new Promise(() => undefined)
    })
    const client = new Wire(await dialSecurely(t, secure))
    client.write(Buffer.concat([preface, frame(4, 0, 0), ...heads]))
    client.write(frame(6, 0, 0, Buffer.from('all read')))
    await client.until('all read')
    // Requests of an unproven caller begin after the read that brought them.
    for (let i = 0; i < 3; i++) await turn()
    return asked
  }
  const few = await served(1)
  t.ok(few > 0 && few < streams, `with less memory new streams are refused: ${few} were served`)
  t.equal(await served(real.sessionMegabytes), streams)
})

void t.test('a connection that resets too many streams is cut', async (t) => {
  let asked = 0
  const { secure } = await starting(t, { unprovenResets: 10, resetsPerSecond: 1 }, () => {
    asked++
    return new Promise(() => undefined)
  })
  const client = new Wire(await dialSecurely(t, secure))
  client.write(Buffer.concat([preface, frame(4, 0, 0)]))
  for (let i = 0; i < 100 && !client.socket.destroyed; i++) {
    const before = asked
    client.write(whole(2 * i + 1))
    await until('its begin', () => asked > before || client.socket.destroyed)
    client.write(frame(3, 0, 2 * i + 1, cancel))
  }
  await client.ended
  t.ok(asked >= 10 && asked < 50, `${asked} requests began`)
})

/** The hub's ends of connections over HTTP/1.1 on which a request has begun, with their servers. */
function servedSockets(t: Test): { readonly socket: Socket; readonly server: Server }[] {
  const served: { socket: Socket; server: Server }[] = []
  const note = (message: unknown): void => void served.push(message as (typeof served)[number])
  subscribe('http.server.request.start', note)
  t.teardown(() => unsubscribe('http.server.request.start', note))
  return served
}

void t.test('an unread body has a time limit', async (t) => {
  const { plain } = await starting(t, {}, async () => wholeReply('not read'))
  const clock = setClock(t, { once: true })
  const client = await dial(t, plain)
  client.write('POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 10\r\n\r\n1')
  t.equal((await client.answer()).body, 'not read')
  clock.forward(29_999)
  client.write('2')
  await turn()
  await turn()
  t.notOk(client.socket.readableEnded)
  clock.forward(1)
  await client.ended
})

void t.test('over HTTP/1.1 heads, idle connections and answers have their times', async (t) => {
  const served = servedSockets(t)
  const { plain } = await starting(t, {}, async (incoming) => {
    incoming.onProven?.(true)
    return incoming.url === '/watch'
      ? scriptedReply((sink) => void sink.write(Buffer.alloc(8 << 20)))
      : wholeReply('ok')
  })
  const idle = await dial(t, plain)
  t.equal((await idle.write(get()).answer()).body, 'ok')
  const [first] = served
  t.equal(first?.server.headersTimeout, 30_000)
  // Node adds a second: its client is to close first.
  await until('it to be idle', () => first?.socket.timeout === 150_000 + 1_000)
  first?.socket.emit('timeout')
  await idle.ended

  const stalled = await dial(t, plain)
  await stalled.write(get('/watch')).head()
  stalled.socket.pause()
  const [, second] = served
  t.equal(second?.socket.timeout, 120_000)
  second?.socket.emit('timeout')
  t.ok(second?.socket.destroyed)
})

void t.test('over HTTP/2 a connection may be idle for 150 seconds', async (t) => {
  const { secure } = await starting(t, {})
  const clock = setClock(t)
  const client = new Wire(await dialSecurely(t, secure))
  client.write(Buffer.concat([preface, frame(4, 0, 0), frame(6, 0, 0, Buffer.from('all read'))]))
  await client.until('all read')
  clock.forward(149_999)
  client.write(frame(6, 0, 0, Buffer.from('and this')))
  await client.until('and this')
  clock.forward(1)
  await client.ended
  t.equal(real.idleMs, 150_000)
})

void t.test('a TLS handshake has 10 seconds', async (t) => {
  const mocked = mock.method(Socket.prototype, 'setTimeout')
  t.teardown(() => mocked.mock.restore())
  const { secure } = await starting(t, {})
  const slow = connectPlain({ port: secure, host: '127.0.0.1' }).resume()
  t.teardown(() => slow.destroy())
  const found = await until('a handshake to begin', () =>
    mocked.mock.calls.find(({ this: socket }) => socket instanceof TLSSocket),
  )
  t.equal(found.arguments[0], 10_000)
  ;(found.this as TLSSocket).emit('timeout')
  await once(slow, 'close')
})
