import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { Sink } from '../../../src/http/exchange/exchange.ts'
import {
  aborted,
  scriptedReply,
  get,
  wholeReply,
  startListener,
  provenAs,
} from '../../kit/listener.ts'
import { fill } from '../../kit/wire/fill.ts'
import { until } from '../../kit/until.ts'

void t.test('there is a body only where the head says so', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
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

void t.test('an unread body does not block the next request', async (t) => {
  const { dial } = await startListener(t, async ({ body, url }) => {
    if (url === '/some')
      for await (const _ of body?.iterator({ destroyOnReturn: false }) ?? []) break
    return wholeReply(url)
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

void t.test('an answer that the hub ends is a break, though nothing else ends it', async (t) => {
  let stopped = false
  const { dial, seen } = await startListener(t, async () =>
    scriptedReply((sink) => {
      sink.write(Buffer.from('some'))
      return () => void (stopped = true)
    }),
  )
  const client = await dial()
  client.write(get())
  await client.head()
  seen[0]?.client?.abort(new Error('short of memory'))
  await client.ended
  t.ok(stopped, 'and its source is stopped')
})

void t.test('a failed stream is a break, at whatever point it fails', async (t) => {
  const cause = new Error('cut')
  for (const when of ['at once', 'before a byte', 'after some']) {
    let sink: Sink | undefined
    const { dial, broken } = await startListener(t, async () =>
      scriptedReply((opened) => {
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
    t.strictSame(broken, [cause], `${when}: it is reported, once`)
  }
})

void t.test('a writer learns of a slow client, and waits for it', async (t) => {
  let sink: Sink | undefined
  const { dial } = await startListener(t, async () =>
    scriptedReply((opened) => void (sink = opened)),
  )
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

void t.test('at most 128 KiB of an answer are buffered for a slow client', async (t) => {
  let response: ServerResponse | undefined
  const began = (message: unknown): void => {
    response = (message as { readonly response: ServerResponse }).response
  }
  subscribe('http.server.request.start', began)
  t.teardown(() => unsubscribe('http.server.request.start', began))
  let sink: Sink | undefined
  const { dial } = await startListener(t, async () =>
    scriptedReply((opened) => void (sink = opened)),
  )
  await (await dial()).write(get()).head()
  if (!sink || !response) throw new Error('the answer has begun')
  // In one turn: the client can take nothing meanwhile.
  let chunks = 0
  do chunks++
  while (sink.write(Buffer.alloc(1024), () => undefined) && chunks < 1024)
  t.ok(chunks > 120 && chunks <= 128, `${chunks} KiB that are released once they are written`)
  while (sink.write(Buffer.alloc(1024)) && response.writableLength < 1024 * 1024);
  const kilobytes = Math.floor(response.writableLength / 1024)
  t.ok(kilobytes > 120 && kilobytes <= 130, `${kilobytes} KiB once its socket is full`)
})

void t.test(
  'a client that takes nothing of its answer is cut, one that waits for it is not',
  async (t) => {
    const { dial, seen, cuts } = await startListener(
      t,
      provenAs(async ({ url }) =>
        scriptedReply((sink) => {
          sink.write(Buffer.from('head'))
          if (url === '/stalled') for (let i = 0; i < 64; i++) sink.write(Buffer.alloc(1024 * 1024))
          return undefined
        }),
      ),
      { stalledMs: 200 },
    )
    const waiting = await dial()
    waiting.write(get('/waiting'))
    await waiting.until('head')
    const stalled = await dial()
    stalled.socket.pause()
    stalled.write(get('/stalled'))
    await until('two requests', () => seen.length >= 2)
    await aborted(seen[1]?.signal ?? AbortSignal.abort())
    t.strictSame(cuts, ['stalled'])
    t.equal(seen[0]?.signal.aborted, false)
  },
)

void t.test('a whole answer that its client does not take is cut too', async (t) => {
  const { dial, seen } = await startListener(
    t,
    async () => wholeReply('x'.repeat(64 * 1024 * 1024)),
    {
      stalledMs: 200,
    },
  )
  const client = await dial()
  client.socket.pause()
  client.write(get())
  await until('the request', () => seen.length > 0)
  t.match(await aborted(seen[0]?.signal ?? AbortSignal.abort()), { code: 'CLIENT_GONE' })
})
