import t from 'tap'
import { endToEnd, HeaderList } from '../../../src/http/exchange/headers.ts'

const raw = ['Host', 'hub', 'X-b', '1', 'WARNING', '299 - "a"', 'x-B', '2', 'Warning', '299 - "b"']

void t.test('fields keep their order, their case and their number', async (t) => {
  t.strictSame(new HeaderList(raw).raw, raw)
  t.strictSame(new HeaderList(raw).with('X-c', '3').raw, [...raw, 'X-c', '3'])
  t.strictSame(new HeaderList(raw).without((name) => name === 'host').raw, raw.slice(2))
})

void t.test('a field is found whatever its case: the first value, or all in order', async (t) => {
  const headers = new HeaderList(raw)
  t.equal(headers.get('x-b'), '1')
  t.strictSame(headers.all('x-b'), ['1', '2'])
  t.strictSame(headers.all('warning'), ['299 - "a"', '299 - "b"'])
  t.equal(headers.get('x-c'), undefined)
  t.strictSame(headers.all('x-c'), [])
})

void t.test('a value is never taken for a name', async (t) => {
  const headers = new HeaderList(['a', 'host', 'b', 'c'])
  t.equal(headers.get('host'), undefined)
  t.strictSame(headers.all('host'), [])
  t.strictSame(headers.without((name) => name === 'host').raw, ['a', 'host', 'b', 'c'])
})

void t.test('deriving a list does not change the original', async (t) => {
  const headers = new HeaderList(raw)
  headers.with('X-c', '3')
  headers.without(() => true)
  t.strictSame(headers.raw, raw)
})

void t.test('an empty value is a value', async (t) => {
  t.equal(new HeaderList(['X-Empty', '']).get('x-empty'), '')
})

void t.test('hop-by-hop headers are removed, in whatever case they are written', async (t) => {
  const headers = new HeaderList([
    'Connection',
    'close',
    'KEEP-ALIVE',
    'timeout=5',
    'Proxy-Connection',
    'keep-alive',
    'Proxy-Authenticate',
    'Basic',
    'proxy-authorization',
    'Basic eDp5',
    'TE',
    'trailers',
    'Trailer',
    'X-T',
    'Transfer-Encoding',
    'chunked',
    'Upgrade',
    'h2c',
    'Content-Length',
    '3',
  ])
  t.strictSame(endToEnd(headers).raw, ['Content-Length', '3'])
})

void t.test('fields named by any Connection header are removed', async (t) => {
  const headers = new HeaderList([
    'connection',
    'X-One,  x-TWO',
    'x-one',
    '1',
    'Connection',
    'close,X-Three,',
    'X-Two',
    '2',
    'X-THREE',
    '3',
    'X-Four',
    '4',
  ])
  t.strictSame(endToEnd(headers).raw, ['X-Four', '4'])
})

void t.test('Authorization is passed on, though Connection names it', async (t) => {
  const headers = new HeaderList(['Connection', 'AUTHORIZATION', 'Authorization', 'Bearer a'])
  t.strictSame(endToEnd(headers).raw, ['Authorization', 'Bearer a'])
})
