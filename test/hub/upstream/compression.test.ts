import t from 'tap'
import { gzipSync } from 'node:zlib'
import { Chunks } from '../../../src/http/exchange/chunks.ts'
import type { BytesReply, Exchange } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { withCompression } from '../../../src/hub/upstream/compression.ts'
import { exchangeOf, type ExchangeOptions } from '../../kit/exchange.ts'

const text = 'what an API server has to say'
const packed = gzipSync(text)

interface Seen {
  /** What was requested upstream. */
  readonly asked: string | undefined
  readonly body: string
  readonly coding: string | undefined
}

/**
 * What goes up for a request, and what comes of an answer that is compressed for whoever asks for
 * it.
 */
async function seen(
  url: string,
  described: ExchangeOptions,
  { always = true, mayChange = false, status = 200 } = {},
): Promise<Seen> {
  let asked: string | undefined
  const upstream = async ({ headers }: Exchange): Promise<BytesReply> => {
    asked = headers.get('accept-encoding')
    const body = asked === 'gzip' ? packed : Buffer.from(text)
    const fields = ['Content-Length', String(body.byteLength), 'Vary', 'Accept-Encoding']
    return {
      kind: 'bytes',
      from: 'cloud',
      status,
      headers: new HeaderList(asked === 'gzip' ? [...fields, 'Content-Encoding', 'gzip'] : fields),
      source: (sink) => {
        if (status !== 304) sink.write(body)
        sink.end()
        return () => undefined
      },
    }
  }
  const forward = withCompression(upstream, {
    always: () => always,
    mayChange: () => mayChange,
    onUnpacked: () => undefined,
  })
  const reply = await forward(exchangeOf(url, described), { onOutcome: () => undefined })
  t.equal(reply.headers.get('vary'), 'Accept-Encoding')
  const parts: Uint8Array[] = []
  for await (const group of new Chunks(reply.source)) parts.push(...group)
  const body = Buffer.concat(parts)
  const coding = reply.headers.get('content-encoding')
  return { asked, body: body.equals(packed) ? 'packed' : body.toString(), coding }
}

const gzip = { headers: { 'Accept-Encoding': 'gzip' } }
const plain = { asked: 'gzip', body: text, coding: undefined }
const asItCame = { asked: 'gzip', body: 'packed', coding: 'gzip' }
const unasked = { asked: undefined, body: text, coding: undefined }

void t.test(
  'lists and watches are compressed upstream for plain clients, if configured',
  async (t) => {
    for (const url of ['/api/v1/pods', '/api/v1/pods?watch=1']) {
      t.strictSame(await seen(url, {}), plain, url)
      t.strictSame(await seen(url, {}, { always: false }), unasked, url)
      t.strictSame(await seen(url, gzip), asItCame, url)
      t.strictSame(await seen(url, {}, { status: 403 }), plain, 'a refusal, too')
    }
  },
)

void t.test('other requests are not compressed', async (t) => {
  const pod = '/api/v1/namespaces/default/pods/a'
  t.strictSame(await seen(pod, {}), unasked)
  t.strictSame(await seen('/version', {}), unasked)
  t.strictSame(await seen('/api/v1/pods', { method: 'HEAD' }), unasked)
  t.strictSame(await seen('/api/v1/pods', { method: 'DELETE' }), unasked)
  t.strictSame(await seen('/api/v1/pods', { headers: { Range: 'bytes=0-9' } }), unasked)
})

void t.test('an answer that may change is inflated for clients that take gzip', async (t) => {
  for (const always of [true, false]) {
    t.strictSame(await seen('/api/v1/pods', gzip, { always, mayChange: true }), plain)
  }
  t.strictSame(
    await seen('/api/v1/pods', gzip, { mayChange: true, status: 403 }),
    asItCame,
    'no filter changes a refusal',
  )
})

void t.test('an answer without a body is not inflated', async (t) => {
  t.strictSame(await seen('/api/v1/pods', {}, { status: 304 }), {
    asked: 'gzip',
    body: '',
    coding: 'gzip',
  })
})
