import { once } from 'node:events'
import { constants } from 'node:http2'
import t from 'tap'
import { connected, pong, running, watch } from './watches.ts'

void t.test('the head goes up as HTTP/2 has it, and comes back as it was sent', async (t) => {
  const { upstream, connections } = await connected(t)
  const asked = watch(connections, upstream.origin, {
    headers: [
      'Host',
      'elsewhere',
      'Accept',
      'a',
      'ACCEPT',
      'b',
      'Connection',
      'x-hop',
      'X-Hop',
      'y',
      'TE',
      'gzip',
    ],
  })
  const { stream, fields } = await upstream.next()
  t.strictSame(fields, [
    ':method',
    'GET',
    ':scheme',
    'https',
    ':authority',
    new URL(upstream.origin).host,
    ':path',
    '/watch?a=b',
    'accept',
    'a',
    'accept',
    'b',
  ])
  stream.respond({ ':status': 410, 'x-b': ['2', '1'], 'x-a': '3' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-last': 'trailer' }))
  stream.end('gone')
  t.equal(await asked.head.promise, 410)
  t.equal(await asked.code(), 'end')
  t.equal(asked.body, 'gone')
  t.strictSame(asked.fields.slice(0, 6), ['x-b', '2', 'x-b', '1', 'x-a', '3'])
  t.strictSame(asked.controller?.rawTrailers, ['x-last', 'trailer'])
})

void t.test('an abort ends its stream and no other', async (t) => {
  const { upstream, connections } = await connected(t, { idleMs: 10 })
  const one = await running(connections, upstream)
  const other = await running(connections, upstream)
  one.asked.controller?.pause()
  one.stream.write('more')
  await pong(one.session)
  const closed = once(one.stream, 'close')
  const gone = once(one.session, 'close')
  one.asked.controller?.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }))
  t.equal(await one.asked.code(), 'ENOUGH')
  await closed
  t.equal(one.stream.rstCode, constants.NGHTTP2_CANCEL)
  other.stream.end('!')
  t.equal(await other.asked.code(), 'end')
  t.equal(other.asked.body, 'event!')
  // Nothing of either is left that would keep it open.
  await gone
})

void t.test('a watch that is not read stops its server, and no other watch', async (t) => {
  const { upstream, connections } = await connected(t)
  const stuck = await running(connections, upstream)
  const other = await running(connections, upstream)
  stuck.asked.controller?.pause()
  t.equal(stuck.asked.controller?.paused, true)
  const much = 'x'.repeat(4 * 1024 * 1024)
  const taken = new Promise((resolve) => stuck.stream.end(much, () => resolve(undefined)))
  other.stream.end('y'.repeat(2 * 1024 * 1024))
  t.equal(await other.asked.code(), 'end')
  t.equal(other.asked.body.length, 5 + 2 * 1024 * 1024)
  t.equal(stuck.asked.body.length < 1024 * 1024, true)
  stuck.asked.controller?.resume()
  t.equal(await stuck.asked.code(), 'end')
  t.equal(stuck.asked.body, `event${much}`)
  await taken
})

void t.test('data sent before the end arrives, however late it is read', async (t) => {
  const { upstream, connections } = await connected(t)
  const { asked, stream } = await running(connections, upstream)
  asked.controller?.pause()
  stream.end(' and the last')
  await once(stream, 'close')
  asked.controller?.resume()
  t.equal(await asked.code(), 'end')
  t.equal(asked.body, 'event and the last')
})

void t.test('a stream that breaks off is no end', async (t) => {
  const { upstream, connections } = await connected(t)
  const reset = await running(connections, upstream)
  reset.stream.destroy(new Error('broken'))
  t.equal(await reset.asked.code(), 'STREAM_BROKEN')
  const closed = await running(connections, upstream)
  closed.session.destroy()
  t.equal(await closed.asked.code(), 'STREAM_BROKEN')
  const cut = await running(connections, upstream)
  upstream.sockets.at(-1)?.destroy()
  t.equal(await cut.asked.code(), 'STREAM_BROKEN')
  t.equal(upstream.sessions.length, 2)
})

void t.test(
  'a head that HTTP/2 cannot carry goes over HTTP/1.1, and holds up no other',
  async (t) => {
    const { upstream, connections } = await connected(t)
    const odd = watch(connections, upstream.origin, {
      headers: ['User-Agent', 'a', 'User-Agent', 'b'],
    })
    const usual = await running(connections, upstream)
    t.equal(await odd.code(), 'end')
    t.equal(odd.body, 'over HTTP/1.1')
    t.equal(usual.asked.body, 'event')
  },
)
