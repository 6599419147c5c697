import type { Socket } from 'node:net'
import t from 'tap'
import type { Sink } from '../../src/exchange/exchange.ts'
import { aborted, driven, get, said, startListener, textOf } from '../kit/listener.ts'
import { fill } from '../kit/wire/fill.ts'
import { valuesOf } from '../kit/wire/wire.ts'

void t.test('a request is told as it was sent', async (t) => {
  const { dial, seen, listener } = await startListener(t, async () => said('ok'))
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
  t.strictSame(incoming?.peer, {
    address: '127.0.0.1',
    port: localPort,
    localAddress: '127.0.0.1',
    localPort: listener.port,
  })
})

void t.test(
  'the other end is the same for each request of a connection, and another for each connection',
  async (t) => {
    const { dial, seen } = await startListener(t, async () => said('ok'))
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
  'an answer leaves as it is told: code, fields in order, case and number, body',
  async (t) => {
    const { dial } = await startListener(t, async () => ({
      ...said(
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

void t.test('a client that says how long it keeps its connection idle is outlived', async (t) => {
  const { dial } = await startListener(t, async () => said('ok'))
  const [keepAlive = ''] = valuesOf(await (await dial()).write(get()).answer(), 'keep-alive')
  t.ok(Number(/timeout=(\d+)/.exec(keepAlive)?.[1]) > 90, keepAlive)
})

void t.test('a head of almost 64 KB is taken', async (t) => {
  const { dial, seen } = await startListener(t, async () => said('ok'))
  const long = 'v'.repeat(63 * 1024)
  t.equal((await (await dial()).write(get('/', `X-Long: ${long}`)).answer()).status, 200)
  t.equal(seen[0]?.headers.get('x-long')?.length, long.length)
})

void t.test('a longer one is refused, and the connection closed', async (t) => {
  const { dial, seen } = await startListener(t, async () => said('ok'))
  const client = await dial()
  const answer = await client.write(get('/', `X-Long: ${'v'.repeat(65 * 1024)}`)).answer()
  t.equal(answer.status, 431)
  t.equal(answer.body, '431 Request Header Fields Too Large')
  await client.ended
  t.equal(seen.length, 0)
})

void t.test('what could be read as two requests is none', async (t) => {
  const { dial, seen } = await startListener(t, async (incoming) => said(await textOf(incoming)))
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: hub\r\n\r\n'
  const table: [string, string][] = [
    [
      'both ways of saying a length',
      `POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    [
      'the same in the other order',
      `POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    [
      'two lengths',
      `POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    ],
    [
      'the same length twice',
      'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab',
    ],
    ['a list of lengths', 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 2, 2\r\n\r\nab'],
    ['a length with a sign', 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: +2\r\n\r\nab'],
    ['a negative length', 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: -1\r\n\r\n'],
    ['a length in hexadecimal', 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 0x2\r\n\r\nab'],
    [
      'an encoding that hides chunks',
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'chunks that are not last',
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    ],
    [
      'a space before the colon',
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'a field that goes on in the next line',
      'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\r\n Transfer-Encoding: chunked\r\n\r\n',
    ],
    ['a field folded to nothing', 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\r\n\tb\r\n\r\n'],
    ['a line that ends with LF alone', 'GET / HTTP/1.1\nHost: hub\r\n\r\n'],
    ['a field that ends with LF alone', 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\nX-B: 2\r\n\r\n'],
    ['a CR within a field', 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\rX-B: 2\r\n\r\n'],
    ['a NUL within a field', 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\x002\r\n\r\n'],
    [
      'a chunk size that is none',
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n',
    ],
    [
      'a chunk longer than it says',
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n',
    ],
    [
      'a chunk line that ends with LF alone',
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n',
    ],
    [
      'chunks in HTTP/1.0, which has none',
      `POST / HTTP/1.0\r\nHost: hub\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: hub\r\nHost: other\r\n\r\n'],
    ['a host that is none', 'GET / HTTP/1.1\r\nHost: hub, other\x01\r\n\r\n'],
    ['a version of long ago', 'GET /hidden\r\n\r\n'],
    ['a version to come', 'GET /hidden HTTP/2.0\r\nHost: hub\r\n\r\n'],
    [
      'an encoding within the chunks',
      'POST /hidden HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    ],
    ['another protocol', 'GET / HTTP/9.9\r\nHost: hub\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['nonsense', '\x00\x01\x02\r\n\r\n'],
  ]
  for (const [what, bytes] of table) {
    const client = await dial()
    client.write(bytes)
    const text = await client.rest()
    t.match(text, /^(HTTP\/1\.1 (400|501|505) |$)/, what)
    t.equal(text.split('HTTP/1.1').length <= 2, true, `${what}: one answer at most`)
  }
  t.notOk(seen.some(({ url }) => url === '/hidden'))
})

void t.test('what is no request is refused in the words of net/http', async (t) => {
  const { dial } = await startListener(t, async () => said('ok'))
  const answer = await (await dial()).write('nonsense\r\n\r\n').answer()
  t.equal(answer.line, 'HTTP/1.1 400 Bad Request')
  t.strictSame(valuesOf(answer, 'content-type'), ['text/plain; charset=utf-8'])
  t.equal(answer.body, '400 Bad Request')
  t.strictSame(valuesOf(answer, 'connection'), ['close'])
})

void t.test('a HEAD whose body is malformed is not refused with a body', async (t) => {
  const { dial } = await startListener(t, () => new Promise(() => undefined))
  const chunks = 'Transfer-Encoding: chunked\r\n\r\nnonsense\r\n'
  const client = await dial()
  t.equal(await client.write(`HEAD / HTTP/1.1\r\nHost: hub\r\n${chunks}`).rest(), '')
  const other = await dial()
  const text = await other.write(`POST / HTTP/1.1\r\nHost: hub\r\n${chunks}`).rest()
  t.match(text, /^HTTP\/1\.1 400 /)
})

void t.test('nonsense after a request is no answer to that request', async (t) => {
  let sink: Sink | undefined
  const { dial, seen } = await startListener(t, async () =>
    driven((opened) => void (sink = opened)),
  )
  for (const begun of [false, true]) {
    const client = await dial()
    client.write(get('/', 'X-A: 1'))
    await new Promise<void>((resolve) => {
      const look = (): void => void (sink ? resolve() : setImmediate(look))
      look()
    })
    if (begun) {
      sink?.write(Buffer.from('part'))
      await client.until('part\r\n')
    } else {
      await client.head()
    }
    client.write('nonsense\r\n\r\n')
    t.equal(await client.rest(), '', 'the connection is cut')
    await aborted(seen.at(-1)?.signal ?? AbortSignal.abort())
    sink = undefined
  }
  const slow = await startListener(t, () => new Promise(() => undefined))
  const client = await slow.dial()
  client.write(get()).write('nonsense\r\n\r\n')
  t.equal(await client.rest(), '', 'before the head too: it would be taken for the answer')
})

void t.test('a client that asks whether to send its body is told to', async (t) => {
  const { dial } = await startListener(t, async (incoming) => said(await textOf(incoming)))
  const client = await dial()
  client.write('POST / HTTP/1.1\r\nHost: hub\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n')
  t.equal((await client.head()).line, 'HTTP/1.1 100 Continue')
  t.equal((await client.write('abc').answer()).body, 'abc')
})

void t.test('pipelined requests are answered in the order in which they came', async (t) => {
  const { dial } = await startListener(t, async ({ url }) => {
    if (url === '/1') for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    return said(url)
  })
  const client = await dial()
  client.write(get('/1') + get('/2') + get('/3'))
  for (const url of ['/1', '/2', '/3']) t.equal((await client.answer()).body, url)
})

void t.test(
  'a client that goes ends all that it has asked for, what waits for its turn too',
  async (t) => {
    const { dial, seen } = await startListener(t, () => new Promise(() => undefined))
    const client = await dial()
    client.write(get('/1') + get('/2'))
    while (seen.length < 2) await new Promise(setImmediate)
    client.destroy()
    for (const { signal } of seen) t.match(await aborted(signal), { code: 'CLIENT_GONE' })
  },
)

void t.test('requests without number over one connection leave nothing on it', async (t) => {
  const warnings: Error[] = []
  const warn = (warning: Error): unknown => warnings.push(warning)
  process.on('warning', warn)
  t.teardown(() => process.off('warning', warn))
  const { dial } = await startListener(t, async ({ url }) => said(url))
  const client = await dial()
  for (let i = 0; i < 30; i++) await client.write(get()).answer()
  client.write(get('/p').repeat(30))
  for (let i = 0; i < 30; i++) t.equal((await client.answer()).body, '/p')
  await new Promise(setImmediate)
  t.strictSame(warnings, [])
})

void t.test('HTTP/1.0 is answered without chunks, and its connection closed', async (t) => {
  const { dial } = await startListener(t, async () =>
    driven((sink) => {
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

void t.test('a body is passed on as it comes, whatever says how long it is', async (t) => {
  const parts: string[] = []
  let arrived: (() => void) | undefined
  const { dial } = await startListener(t, async ({ body }) => {
    for await (const chunk of body ?? []) {
      parts.push((chunk as Buffer).toString())
      arrived?.()
    }
    return said(parts.join('|'))
  })
  const next = (): Promise<void> => new Promise((resolve) => (arrived = resolve))
  const client = await dial()
  for (const [head, first, second] of [
    ['Transfer-Encoding: chunked', '3\r\nabc\r\n', '2\r\nde\r\n0\r\n\r\n'],
    ['Content-Length: 5', 'abc', 'de'],
  ] as const) {
    parts.length = 0
    const came = next()
    client.write(`POST / HTTP/1.1\r\nHost: hub\r\n${head}\r\n\r\n${first}`)
    await came
    t.strictSame(parts, ['abc'])
    t.equal((await client.write(second).answer()).body, 'abc|de')
  }
})

void t.test('there is a body only where the head says so', async (t) => {
  const { dial, seen } = await startListener(t, async () => said('ok'))
  const client = await dial()
  for (const [method, field, expected] of [
    ['GET', 'X: 1', false],
    ['POST', 'X: 1', false],
    ['POST', 'Content-Length: 0', false],
    ['DELETE', 'Content-Length: 1', true],
    ['PUT', 'Transfer-Encoding: chunked', true],
  ] as const) {
    client.write(`${method} / HTTP/1.1\r\nHost: hub\r\n${field}\r\n\r\n`)
    if (expected) client.write(field.startsWith('T') ? '0\r\n\r\n' : 'x')
    await client.answer()
    t.equal(seen.at(-1)?.body !== undefined, expected, `${method} ${field}`)
  }
})

void t.test('a body that nobody reads is in nobody’s way', async (t) => {
  const { dial } = await startListener(t, async ({ body, url }) => {
    if (url === '/some')
      for await (const _ of body?.iterator({ destroyOnReturn: false }) ?? []) break
    return said(url)
  })
  const client = await dial()
  const size = 4 * 1024 * 1024
  for (const url of ['/none', '/some']) {
    client.write(`POST ${url} HTTP/1.1\r\nHost: hub\r\nContent-Length: ${size}\r\n\r\nx`)
    t.equal((await client.answer()).body, url)
    client.write(Buffer.alloc(size - 1)).write(get('/next'))
    t.equal((await client.answer()).body, '/next')
  }
})

void t.test('the head of a stream goes out before any byte of it', async (t) => {
  let sink: Sink | undefined
  const { dial } = await startListener(t, async () =>
    driven((opened) => void (sink = opened), 'Content-Type', 'application/json'),
  )
  const client = await dial()
  const head = await client.write(get()).head()
  t.strictSame(valuesOf(head, 'transfer-encoding'), ['chunked'])
  sink?.write(Buffer.from('{"a":1}\n'))
  t.equal(await client.chunk(), '{"a":1}\n')
  sink?.write(Buffer.from('{"b":2}\n'))
  t.equal(await client.chunk(), '{"b":2}\n')
  sink?.end()
  t.equal(await client.chunk(), '')
})

void t.test('trailers follow the body', async (t) => {
  const { dial } = await startListener(t, async () =>
    driven((sink) => {
      sink.write(Buffer.from('abc'))
      sink.end(['X-One', '1', 'x-TWO', '2'])
      return undefined
    }),
  )
  const { body, trailers } = await (await dial()).write(get()).answer()
  t.equal(body, 'abc')
  t.strictSame(trailers, ['X-One', '1', 'x-TWO', '2'])
})

void t.test('a failed stream is a break, at whatever point it fails', async (t) => {
  const cause = new Error('cut')
  for (const when of ['at once', 'before a byte', 'after some']) {
    let sink: Sink | undefined
    const { dial, broken } = await startListener(t, async () =>
      driven((opened) => {
        sink = opened
        if (when === 'at once') sink.fail(cause)
        return undefined
      }),
    )
    const client = await dial()
    client.write(get())
    if (when !== 'at once') await client.head()
    if (when === 'after some') {
      sink?.write(Buffer.from('abc'))
      t.equal(await client.chunk(), 'abc')
    }
    if (when !== 'at once') sink?.fail(cause)
    t.notMatch(await client.rest(), '0\r\n\r\n', when)
    t.strictSame(broken, [cause], `${when}: it is told of, once`)
  }
})

void t.test(
  'a stream whose client has gone is given up, once, and one that has ended is not',
  async (t) => {
    let sink: Sink | undefined
    const given: string[] = []
    const { dial, seen, broken } = await startListener(t, async ({ url }) =>
      driven((opened) => {
        sink = opened
        return () => given.push(url)
      }),
    )
    const client = await dial()
    await client.write(get('/left')).head()
    client.destroy()
    t.match(await aborted(seen[0]?.signal ?? AbortSignal.abort()), { code: 'CLIENT_GONE' })
    t.strictSame(given, ['/left'])
    sink?.write(Buffer.from('into the void'))
    await sink?.drained()
    sink?.end()
    sink?.fail(new Error('late'))
    t.strictSame(broken, [], 'a client that goes is no failure')
  },
)

void t.test('a slow client is told of to whoever writes, and waited for', async (t) => {
  let sink: Sink | undefined
  const { dial } = await startListener(t, async () => driven((opened) => void (sink = opened)))
  const client = await dial()
  await client.write(get()).head()
  client.socket.pause()
  if (!sink) throw new Error('the answer has begun')
  const chunks = await fill(sink, Buffer.alloc(1024 * 1024))
  t.ok(chunks < 24, `${chunks} MB`)
  const woken = sink.drained()
  client.destroy()
  await woken
})

void t.test('an answer to a HEAD has no body, with or without a length', async (t) => {
  const { dial } = await startListener(t, async ({ url }) =>
    url === '/body'
      ? said('abc')
      : driven(
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

void t.test('a handler that fails cuts the connection, and is told of', async (t) => {
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

void t.test(
  'a client that takes nothing of its answer is cut, one that waits for it is not',
  async (t) => {
    const { dial, seen, cuts } = await startListener(
      t,
      async ({ url }) =>
        driven((sink) => {
          sink.write(Buffer.from('head'))
          if (url === '/stalled') for (let i = 0; i < 64; i++) sink.write(Buffer.alloc(1024 * 1024))
          return undefined
        }),
      { stalledMs: 200 },
    )
    const waiting = await dial()
    waiting.write(get('/waiting'))
    await waiting.until('head')
    const stalled = await dial()
    stalled.socket.pause()
    stalled.write(get('/stalled'))
    while (seen.length < 2) await new Promise(setImmediate)
    await aborted(seen[1]?.signal ?? AbortSignal.abort())
    t.strictSame(cuts, ['stalled'])
    t.equal(seen[0]?.signal.aborted, false)
  },
)

void t.test('a whole answer that its client does not take is cut too', async (t) => {
  const { dial, seen } = await startListener(t, async () => said('x'.repeat(64 * 1024 * 1024)), {
    stalledMs: 200,
  })
  const client = await dial()
  client.socket.pause()
  client.write(get())
  while (seen.length < 1) await new Promise(setImmediate)
  t.match(await aborted(seen[0]?.signal ?? AbortSignal.abort()), { code: 'CLIENT_GONE' })
})

void t.test('requests sent far ahead of their answers end the connection', async (t) => {
  const { dial, seen, cuts } = await startListener(t, () => new Promise(() => undefined))
  const client = await dial()
  client.write(get().repeat(1_000))
  t.equal(await client.rest(), '')
  t.ok(seen.length <= 64, `${seen.length} were begun`)
  for (const { signal } of seen) t.match(await aborted(signal), { code: 'CLIENT_GONE' })
  t.ok(cuts.includes('pipelined'))
})

void t.test('a code is said as an API server says it', async (t) => {
  const { dial } = await startListener(t, async () => ({ ...said(''), status: 413 }))
  const answer = await (await dial()).write(get()).answer()
  t.equal(answer.line, 'HTTP/1.1 413 Request Entity Too Large')
})

void t.test('what the server itself can do is asked of nobody else', async (t) => {
  const { dial, seen } = await startListener(t, async () => said('ok'))
  const client = await dial()
  const options = 'OPTIONS * HTTP/1.1\r\nHost: hub\r\n\r\n'
  const answer = await client.write(options).answer()
  t.strictSame([answer.status, answer.body], [200, ''])
  t.equal((await client.write(get()).answer()).body, 'ok', 'the connection goes on')
  t.equal(seen.length, 1)
})

void t.test('a target in absolute form asks for its path, where it names this host', async (t) => {
  const { dial, seen } = await startListener(t, async () => said('ok'))
  const client = await dial()
  for (const target of ['http://hub/a?b=c', 'HTTP://HUB/a', 'http://other/a', 'ftp://hub/a']) {
    await client.write(get(target)).answer()
  }
  t.strictSame(
    seen.map(({ url }) => url),
    ['/a?b=c', '/a', 'http://other/a', 'ftp://hub/a'],
  )
})

void t.test(
  'a client that awaits a sign before its body is told only where it has one',
  async (t) => {
    const { dial } = await startListener(t, async () => said('ok'))
    const bodiless = get('/', 'Expect: 100-continue')
    t.equal((await (await dial()).write(bodiless).answer()).status, 200)
    const client = await dial()
    client.write(
      'POST / HTTP/1.1\r\nHost: hub\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n',
    )
    t.equal((await client.head()).line, 'HTTP/1.1 100 Continue')
    client.write('x')
    t.equal((await client.answer()).status, 200)
  },
)
