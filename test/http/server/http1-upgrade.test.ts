import type { Duplex } from 'node:stream'
import t from 'tap'
import type { WireReply } from '../../../src/http/exchange/exchange.ts'
import { aborted, scriptedReply, get, wholeReply, startListener } from '../../kit/listener.ts'
import { valuesOf } from '../../kit/wire/wire.ts'

void t.test('a refused upgrade’s status line has a reason phrase', async (t) => {
  const { dial } = await startListener(t, async () => ({ ...wholeReply('no'), status: 404 }))
  const upgrade = get('/', 'Connection: Upgrade', 'Upgrade: websocket')
  t.equal((await (await dial()).write(upgrade).answer()).line, 'HTTP/1.1 404 Not Found')
})

void t.test('an offer of a protocol that the hub does not know is ignored', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
  for (const offer of ['h2c', 'TLS/1.0', 'foo']) {
    const client = await dial()
    t.equal(
      (await client.write(get('/', 'Connection: Upgrade', `Upgrade: ${offer}`)).answer()).body,
      'ok',
    )
    t.equal(seen.at(-1)?.upgrade, false)
  }
  t.equal((await (await dial()).write(get('/', 'Upgrade: websocket')).answer()).body, 'ok')
  t.equal(seen.at(-1)?.upgrade, false, 'nor is one that Connection does not name')
})

void t.test('bytes after an ignored upgrade offer are no request', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
  const client = await dial()
  // Node's parser continues with the next chunk, wherever that begins.
  client.write(get('/', 'Connection: Upgrade', 'Upgrade: h2c') + 'PRI * HTTP/2.0\r\n\r\nSM\r\n')
  t.equal((await client.answer()).body, 'ok')
  client.write(get('/hidden'))
  await client.ended
  t.strictSame(
    seen.map(({ url }) => url),
    ['/'],
  )
})

void t.test('an upgraded connection may be idle without limit', async (t) => {
  let tunnel: Duplex | undefined
  const { dial } = await startListener(
    t,
    async ({ upgrade }) =>
      upgrade
        ? { kind: 'upgrade', from: 'cloud', take: (socket) => void (tunnel = socket) }
        : scriptedReply((sink) => void sink.write(Buffer.from('x'))),
    { stalledMs: 50 },
  )
  const client = await dial()
  client.write(get('/', 'Connection: Upgrade', 'Upgrade: websocket'))
  // Longer than the time of the tunnel, by the time of another that is cut for it.
  const stalled = await dial()
  stalled.write('GET / HTTP/1.1\r\nHost: hub\r\n')
  await stalled.rest()
  tunnel?.write('still there')
  t.equal(await client.until('still there'), 'still there')
  tunnel?.destroy()
})

void t.test('an upgrade that a HEAD asks for is refused without a body', async (t) => {
  const { dial } = await startListener(t, async () => wholeReply('refused'))
  const client = await dial()
  client.write('HEAD / HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  t.match(await client.rest(), /\r\n\r\n$/)
})

void t.test('a pipelined upgrade never overtakes an answer', async (t) => {
  const { dial, seen } = await startListener(t, async ({ upgrade }) =>
    upgrade ? wholeReply('the answer to the second') : new Promise(() => undefined),
  )
  const client = await dial()
  client.write(get('/first') + get('/second', 'Connection: Upgrade', 'Upgrade: websocket'))
  t.equal(await client.rest(), '')
  t.strictSame(
    seen.map(({ url }) => url),
    ['/first'],
  )
  t.match(await aborted(seen[0]?.signal ?? AbortSignal.abort()), { code: 'CLIENT_GONE' })
})

void t.test('a CONNECT pipelined behind requests ends them and the connection', async (t) => {
  const { dial, seen } = await startListener(t, () => new Promise(() => undefined))
  const client = await dial()
  const connect = 'CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n'
  client.write(get('/first') + get('/second') + connect)
  t.equal(await client.rest(), '')
  t.equal(seen.length, 2)
  for (const { signal } of seen) t.match(await aborted(signal), { code: 'CLIENT_GONE' })
})

void t.test('a CONNECT is refused with 405, and unanswered behind a request', async (t) => {
  const { promise: held, resolve: release } = Promise.withResolvers<WireReply>()
  const { dial, seen } = await startListener(t, () => held)
  const connect = 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n'
  const alone = await (await dial()).write(connect).answer()
  t.strictSame([alone.status, valuesOf(alone, 'connection')], [405, ['close']])
  t.equal(await (await dial()).write(get() + connect).rest(), '')
  t.equal(seen.length, 1)
  release(wholeReply('late'))
})
