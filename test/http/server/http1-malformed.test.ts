import t from 'tap'
import type { Sink } from '../../../src/http/exchange/exchange.ts'
import {
  aborted,
  scriptedReply,
  get,
  wholeReply,
  startListener,
  textOf,
} from '../../kit/listener.ts'

void t.test('a request that could be read as two is refused', async (t) => {
  const { dial, seen } = await startListener(t, async (incoming) =>
    wholeReply(await textOf(incoming)),
  )
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: hub\r\n\r\n'
  const table: Readonly<Record<string, string>> = {
    'both ways of saying a length': `POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    'the same in the other order': `POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${hidden}`,
    'two lengths': `POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    'the same length twice':
      'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab',
    'a list of lengths': 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 2, 2\r\n\r\nab',
    'a length with a sign': 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: +2\r\n\r\nab',
    'a negative length': 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: -1\r\n\r\n',
    'a length in hexadecimal': 'POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 0x2\r\n\r\nab',
    'an encoding that hides chunks':
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
    'chunks that are not last':
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    'a space before the colon':
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
    'a field that goes on in the next line':
      'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\r\n Transfer-Encoding: chunked\r\n\r\n',
    'a field folded to nothing': 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\r\n\tb\r\n\r\n',
    'a line that ends with LF alone': 'GET / HTTP/1.1\nHost: hub\r\n\r\n',
    'a field that ends with LF alone': 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\nX-B: 2\r\n\r\n',
    'a CR within a field': 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\rX-B: 2\r\n\r\n',
    'a NUL within a field': 'GET / HTTP/1.1\r\nHost: hub\r\nX-A: 1\x002\r\n\r\n',
    'a chunk size that is none':
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n',
    'a chunk longer than it says':
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n',
    'a chunk line that ends with LF alone':
      'POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n',
    'chunks in HTTP/1.0, which has none': `POST / HTTP/1.0\r\nHost: hub\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    'no host': 'GET / HTTP/1.1\r\n\r\n',
    'two hosts': 'GET / HTTP/1.1\r\nHost: hub\r\nHost: other\r\n\r\n',
    'a host that is none': 'GET / HTTP/1.1\r\nHost: hub, other\x01\r\n\r\n',
    'a version of long ago': 'GET /hidden\r\n\r\n',
    'a version to come': 'GET /hidden HTTP/2.0\r\nHost: hub\r\n\r\n',
    'an encoding within the chunks':
      'POST /hidden HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    'another protocol': 'GET / HTTP/9.9\r\nHost: hub\r\n\r\n',
    TLS: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    nonsense: '\x00\x01\x02\r\n\r\n',
  }
  for (const [what, bytes] of Object.entries(table)) {
    const client = await dial()
    client.write(bytes)
    const text = await client.rest()
    t.match(text, /^(HTTP\/1\.1 (400|501|505) |$)/, what)
    t.equal(text.split('HTTP/1.1').length <= 2, true, `${what}: one answer at most`)
  }
  t.notOk(seen.some(({ url }) => url === '/hidden'))
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

void t.test('malformed bytes after a request do not answer it', async (t) => {
  let sink: Sink | undefined
  const { dial, seen } = await startListener(t, async () =>
    scriptedReply((opened) => void (sink = opened)),
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
