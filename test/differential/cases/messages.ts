import { get, own, shared, write, type RequestCase } from '../request-case.ts'
import type { DifferenceName } from '../differences.ts'

const maps = `/api/v1/namespaces/${shared}/configmaps`
const one = `${maps}/cm-1`
const ownMaps = `/api/v1/namespaces/${own}/configmaps`
const map = { metadata: { name: 'message', namespace: own } }
const only = 'kube-apiserver'
const dry = `${ownMaps}?dryRun=All`

/** HTTP itself: what fields say of a message, and how it is framed. */
const fields: readonly RequestCase[] = [
  { ...get(one, { Expect: '100-continue' }), only },
  get(one, { Expect: 'something' }),
  write('POST', dry, map, { Expect: '100-Continue' }),
  write('POST', dry, map, { Expect: 'something' }),
  {
    ...write('POST', `/api/v1/namespaces/${shared}/nothings`, map, { Expect: '100-continue' }),
    differs: { name: 'continue', code: 404, at: 'kube-apiserver' },
  },
  get(one, { Connection: 'close' }),
  get(one, { Connection: 'X-One', 'X-One': '1' }),
  get(one, { TE: 'trailers' }),
  {
    ...get(one, {
      Upgrade: 'h2c',
      Connection: 'Upgrade, HTTP2-Settings',
      'HTTP2-Settings': 'AAMAAABkAAQAAP__',
    }),
    only,
  },
  { ...get(one, { Upgrade: 'foo/2', Connection: 'Upgrade' }), only },
  get(one, { 'X-Large': 'v'.repeat(30_000) }),
  get(one, { 'X-Many': Array.from({ length: 300 }, (_, at) => `${at}`) }),
  get(one, { 'User-Agent': undefined }),
  get(one, { 'User-Agent': '' }),
  get(one, { 'X-Latin': '\xe9\xff' }),
  get(one, { 'X-Remote-User': 'jane', 'X-Remote-Group': 'system:masters' }),
  get(one, { 'X-Forwarded-For': '10.0.0.1', Forwarded: 'for=10.0.0.1', Via: '1.1 somebody' }),
  get(one, { 'Audit-ID': 'an-audit-id' }),
  get(one, { Cookie: 'a=b' }),
  get(one, { 'Content-Length': '0' }),
  get(one, { 'Content-Type': 'application/json' }),
  get(one, { 'Cache-Control': 'no-store' }),
  { ...get(one), body: 'a body nobody wants' },
  { ...get(one), body: 'a body nobody wants', chunked: true },
  { ...write('DELETE', `${ownMaps}/nothing`, '{}'), chunked: true },
  {
    ...write('POST', dry, map),
    chunked: true,
    headers: { 'Content-Type': 'application/json', Trailer: 'X-Sum' },
    trailers: { 'X-Sum': '1' },
  },
  {
    ...get(one, { 'Impersonate-User': 'jane' }),
    differs: { name: 'impersonation', code: 403 },
    only,
  },
  { ...get(one, { Origin: 'https://page.example' }), differs: { name: 'pages', code: 403 } },
  { ...get(one, { Host: 'page.example' }), differs: { name: 'pages', code: 403 } },
  { ...get(one, { Host: undefined }), only },
  { ...get(one, { Host: 'bad host' }), only },
  { ...get(one, { Host: ['127.0.0.1', '127.0.0.1'] }), only },
]

const line = (text: string, ...more: string[]): RequestCase => ({
  target: '',
  raw: [text, ...more, '', ''].join('\r\n'),
  only,
})

const posted = (...more: string[]): RequestCase =>
  line(`POST ${dry} HTTP/1.1`, 'Host: HOST', ...more)

/** The same, where the hub is known to answer otherwise. */
const unlike = (
  name: DifferenceName,
  code: number,
  ...cases: readonly RequestCase[]
): RequestCase[] => cases.map((request) => ({ ...request, differs: { name, code } }))

const chunked = 'Transfer-Encoding: chunked'

/** Messages that are none, or more than one. */
const malformed: readonly RequestCase[] = [
  line('GET / HTTP/1.1'),
  line('GET / HTTP/2.0', 'Host: HOST'),
  line('GET / HTTP/0.9', 'Host: HOST'),
  line('rubbish'),
  line('G\x00T / HTTP/1.1', 'Host: HOST'),
  line(`GET ${one} HTTP/1.1`, 'Host: HOST', 'no colon'),
  line(`GET ${one} HTTP/1.1`, 'Host: HOST', ': nothing'),
  line(`GET ${one} HTTP/1.1`, 'Host: HOST', 'X-Y: \x00'),
  line(`GET ${one}?${'q'.repeat(30_000)} HTTP/1.1`, 'Host: HOST'),
  posted('Content-Length: 1', 'Content-Length: 2'),
  posted('Content-Length: -1'),
  posted('Content-Length: +2'),
  posted('Content-Length: x'),
  posted('Content-Length: 99999999999999999999'),
  posted('Transfer-Encoding: gzip'),
  posted('Transfer-Encoding: gzip, chunked', '', '0'),
  posted('Transfer-Encoding: identity'),
  posted(chunked, chunked, '', '0'),
  { target: '', raw: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', only },
  ...unlike('http-1.0', 200, line('GET / HTTP/1.0'), line(`GET ${one} HTTP/1.0`, 'Host: HOST')),
  ...unlike('heads', 431, line(`GET ${one} HTTP/1.1`, 'Host: HOST', `X-Y: ${'v'.repeat(70_000)}`)),
  ...unlike('parsing', 505, line('GET /', 'Host: HOST')),
  ...unlike('parsing', 501, posted('Content-Length: 2', chunked, '', '0')),
  ...unlike(
    'parsing',
    400,
    line('GET / HTTP/1.2', 'Host: HOST'),
    line(`GET ${one} HTTP/1.1`, 'Host: HOST', 'X Y: 1'),
    line(`GET ${one} HTTP/1.1`, 'Host: HOST', 'X-Y : 1'),
    line(`GET ${one} HTTP/1.1`, 'Host: HOST', 'X-Y: a', ' b'),
    posted('Content-Length: 2', 'Content-Length: 2', '', '{}'),
    posted(chunked, '', 'zz'),
    posted(chunked, '', 'fffffffffffffffff'),
    posted(chunked, '', '2', '{}{}'),
    { target: '', raw: `GET ${one} HTTP/1.1\nHost: HOST\n\n`, only },
  ),
  ...unlike(
    'parsing',
    200,
    line('GET  / HTTP/1.1', 'Host: HOST'),
    line(`\r\nGET ${one} HTTP/1.1`, 'Host: HOST'),
  ),
]

export const messages: readonly RequestCase[] = [...fields, ...malformed]
