import type { Socket } from 'node:net'
import t from 'tap'
import { aborted, scriptedReply, get, wholeReply, startListener } from '../../kit/listener.ts'
import { valuesOf } from '../../kit/wire/wire.ts'
import { until } from '../../kit/until.ts'

void t.test('a request reaches the handler as it was sent', async (t) => {
  const { dial, seen, listener } = await startListener(t, async () => wholeReply('ok'))
  const client = await dial()
  client.write('GET /a%2Fb//c?x=%zz HTTP/1.1\r\nhOST: hub\r\nX-b: 1\r\nX-B: \xe9\r\nX-b: \r\n\r\n')
  t.equal((await client.answer()).body, 'ok')
  const [incoming] = seen
  t.equal(incoming?.method, 'GET')
  t.equal(incoming?.url, '/a%2Fb//c?x=%zz')
  t.strictSame(incoming?.headers.raw, ['hOST', 'hub', 'X-b', '1', 'X-B', '\xe9', 'X-b', ''])
  t.equal(incoming?.body, undefined)
  t.equal(incoming?.upgrade, false)
  const { localPort } = client.socket as Socket
  t.match(incoming?.peer, {
    address: '127.0.0.1',
    port: localPort,
    localAddress: '127.0.0.1',
    localPort: listener.port,
    inode: /^\d+$/,
  })
})

void t.test(
  'the peer is the same for each request of a connection, and another for each connection',
  async (t) => {
    const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
    const client = await dial()
    await client.write(get()).answer()
    await client.write(get()).answer()
    await (await dial()).write(get()).answer()
    t.equal(seen[0]?.peer, seen[1]?.peer)
    t.not(seen[0]?.peer, seen[2]?.peer)
    t.equal(new Set(seen.map(({ id }) => id)).size, 3)
  },
)

void t.test(
  'an answer leaves as it is given: code, fields in order, case and number, body',
  async (t) => {
    const { dial } = await startListener(t, async () => ({
      ...wholeReply(
        '\x00\xff',
        'X-b',
        '1',
        'WARNING',
        '299 - "a"',
        'Warning',
        '299 - "b"',
        'X-B',
        '\xe9',
      ),
      status: 418,
    }))
    const answer = await (await dial()).write(get()).answer()
    t.equal(answer.status, 418)
    // prettier-ignore
    t.strictSame(answer.fields.slice(0, 10), [
    'X-b', '1', 'WARNING', '299 - "a"', 'Warning', '299 - "b"', 'X-B', '\xe9', 'Content-Length', '2',
  ])
    t.equal(answer.body, '\x00\xff')
    t.strictSame(valuesOf(answer, 'date'), [], 'the time of an answer is its author’s to say')
  },
)

void t.test('the Keep-Alive timeout exceeds 90 seconds', async (t) => {
  const { dial } = await startListener(t, async () => wholeReply('ok'))
  const [keepAlive = ''] = valuesOf(await (await dial()).write(get()).answer(), 'keep-alive')
  t.ok(Number(/timeout=(\d+)/.exec(keepAlive)?.[1]) > 90, keepAlive)
})

void t.test('a head above 64 KB gets 431, and the connection is closed', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
  const client = await dial()
  const answer = await client.write(get('/', `X-Long: ${'v'.repeat(65 * 1024)}`)).answer()
  t.equal(answer.status, 431)
  t.equal(answer.body, '431 Request Header Fields Too Large')
  await client.ended
  t.equal(seen.length, 0)
})

void t.test('pipelined requests are answered in the order in which they came', async (t) => {
  const { dial } = await startListener(t, async ({ url }) => {
    if (url === '/1') for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    return wholeReply(url)
  })
  const client = await dial()
  client.write(get('/1') + get('/2') + get('/3'))
  for (const url of ['/1', '/2', '/3']) t.equal((await client.answer()).body, url)
})

void t.test('a client that disconnects aborts all its requests, pipelined ones too', async (t) => {
  const { dial, seen } = await startListener(t, () => new Promise(() => undefined))
  const client = await dial()
  client.write(get('/1') + get('/2'))
  await until('two requests', () => seen.length >= 2)
  client.destroy()
  for (const { signal } of seen) t.match(await aborted(signal), { code: 'CLIENT_GONE' })
})

void t.test('many requests over one connection leave no listeners on it', async (t) => {
  const warnings: Error[] = []
  const warn = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', warn)
  t.teardown(() => process.off('warning', warn))
  const { dial } = await startListener(t, async ({ url, onProven }) => {
    onProven?.(true)
    return wholeReply(url)
  })
  const client = await dial()
  for (let i = 0; i < 30; i++) await client.write(get()).answer()
  client.write(get('/p').repeat(30))
  for (let i = 0; i < 30; i++) t.equal((await client.answer()).body, '/p')
  await new Promise(setImmediate)
  t.strictSame(warnings, [])
})

void t.test('HTTP/1.0 is answered without chunks, and its connection closed', async (t) => {
  const { dial } = await startListener(t, async () =>
    scriptedReply((sink) => {
      sink.write(Buffer.from('abc'))
      sink.end(['X-T', '1'])
      return undefined
    }),
  )
  const client = await dial()
  const text = await client.write('GET / HTTP/1.0\r\n\r\n').rest()
  t.notMatch(text, /transfer-encoding/i)
  t.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nabc$/)
})

void t.test('an answer to a HEAD has no body, with or without a length', async (t) => {
  const { dial } = await startListener(t, async ({ url }) =>
    url === '/body'
      ? wholeReply('abc')
      : scriptedReply(
          (sink) => {
            sink.end()
            return undefined
          },
          'Content-Length',
          '1234',
        ),
  )
  const client = await dial()
  client.write('HEAD /body HTTP/1.1\r\nHost: hub\r\n\r\nHEAD /bytes HTTP/1.1\r\nHost: hub\r\n\r\n')
  t.strictSame(valuesOf(await client.answer('HEAD'), 'content-length'), ['3'])
  t.strictSame(valuesOf(await client.answer('HEAD'), 'content-length'), ['1234'])
})

void t.test('a handler that throws cuts the connection, and is reported', async (t) => {
  const cause = new Error('unforeseen')
  const { dial, broken } = await startListener(t, async () => {
    throw cause
  })
  t.equal(await (await dial()).write(get()).rest(), '')
  t.strictSame(broken, [cause])
  t.equal(
    await (await dial()).write(get('/', 'Connection: Upgrade', 'Upgrade: websocket')).rest(),
    '',
  )
  t.equal(broken.length, 2)
})

void t.test('requests sent far ahead of their answers end the connection', async (t) => {
  const { dial, seen, cuts } = await startListener(t, () => new Promise(() => undefined))
  const client = await dial()
  client.write(get().repeat(64))
  await until('all of them', () => seen.length === 64)
  t.strictSame(cuts, [])
  client.write(get().repeat(1_000))
  t.equal(await client.rest(), '')
  t.equal(seen.length, 64)
  for (const { signal } of seen) t.match(await aborted(signal), { code: 'CLIENT_GONE' })
  t.ok(cuts.includes('pipelined'))
})

void t.test('a status line has the API server’s reason phrase', async (t) => {
  const { dial } = await startListener(t, async () => ({ ...wholeReply(''), status: 413 }))
  const answer = await (await dial()).write(get()).answer()
  t.equal(answer.line, 'HTTP/1.1 413 Request Entity Too Large')
})

void t.test('OPTIONS * is answered by the server itself', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
  const client = await dial()
  const options = 'OPTIONS * HTTP/1.1\r\nHost: hub\r\n\r\n'
  const answer = await client.write(options).answer()
  t.strictSame([answer.status, answer.body], [200, ''])
  t.equal((await client.write(get()).answer()).body, 'ok', 'the connection goes on')
  t.equal(seen.length, 1)
})

void t.test('a target in absolute form asks for its path, where it names this host', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
  const client = await dial()
  for (const target of ['http://hub/a?b=c', 'HTTP://HUB/a', 'http://other/a', 'ftp://hub/a']) {
    await client.write(get(target)).answer()
  }
  t.strictSame(
    seen.map(({ url }) => url),
    ['/a?b=c', '/a', 'http://other/a', 'ftp://hub/a'],
  )
})

void t.test('100 Continue is sent only to requests that have a body', async (t) => {
  const { dial } = await startListener(t, async () => wholeReply('ok'))
  const bodiless = get('/', 'Expect: 100-continue')
  t.equal((await (await dial()).write(bodiless).answer()).status, 200)
  const client = await dial()
  client.write('POST / HTTP/1.1\r\nHost: hub\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n')
  t.equal((await client.head()).line, 'HTTP/1.1 100 Continue')
  client.write('x')
  t.equal((await client.answer()).status, 200)
})
