import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:tls'
import t from 'tap'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import { limits } from '../../../src/http/server/limits.ts'
import { floodOver, settingsFrames, startFlooded } from '../../kit/flooding.ts'
import { frame, get, postFields } from '../../kit/http2-frames.ts'
import { openStream } from '../../kit/http2.ts'
import { wholeReply } from '../../kit/listener.ts'
import { until } from '../../kit/until.ts'

const cancel = Buffer.from('00000008', 'hex')

/**
 * What a client sends over and over, by its number; and how many requests it has answered at the
 * most.
 */
type Flood = readonly [name: string, nth: (n: number) => Buffer, answered: number]

/** As many in flight as the client may have, and as many that are reset. */
const resets = 2 * limits.unprovenStreams

const floods: readonly Flood[] = [
  ['streams opened and reset at once', (n) => Buffer.concat([get(2 * n + 1), frame(3, 0, 2 * n + 1, cancel)]), resets],
  ['streams that the server has to reset', (n) => Buffer.concat([get(2 * n + 1), frame(8, 0, 2 * n + 1, Buffer.alloc(4))]), resets],
  ['a head without end', (n) => (n === 0 ? frame(1, 1, 1, postFields) : frame(9, 0, 1)), 0],
  ['bodies without bytes', (n) => (n === 0 ? frame(1, 4, 1, postFields) : frame(0, 0, 1)), 1],
  ['settings', () => settingsFrames(200), 0],
  ['more streams than a connection carries', (n) => frame(1, 4, 2 * n + 1, postFields), limits.unprovenStreams],
] // prettier-ignore

for (const [name, nth, answered] of floods) {
  void t.test(
    `a flood over HTTP/2 ends its connection, and affects no other: ${name}`,
    async (t) => {
      const open = new Set<AbortSignalLike>()
      let asked = 0
      const { listener, ca } = await startFlooded(t, async ({ url, signal, body }) => {
        if (url === '/another') return wholeReply('ok')
        asked++
        open.add(signal)
        signal.addEventListener('abort', () => open.delete(signal))
        body?.resume()
        return new Promise(() => undefined)
      })
      const flooder = connect({ port: listener.port, host: '127.0.0.1', ca, ALPNProtocols: ['h2'] })
      await once(flooder, 'secureConnect')
      await floodOver(flooder, nth)
      const session = connectHttp2(`https://127.0.0.1:${listener.port}`, { ca })
      t.teardown(() => session.destroy())
      t.equal((await openStream(session, { ':path': '/another' }).whole()).body, 'ok')
      t.ok(asked <= answered, `${asked} requests began`)
      t.equal(open.size, 0, 'nothing is left of it')
    },
  )
}

void t.test('a request that its client resets in the same read is not begun', async (t) => {
  const begun: string[] = []
  const { dial } = await startFlooded(t, ({ url }) => {
    begun.push(url)
    return new Promise(() => undefined)
  })
  const reset = (stream: number): Buffer =>
    Buffer.concat([get(stream), frame(3, 0, stream, cancel)])
  const wire = await dial()
  wire.write(Buffer.concat([reset(1), reset(3), get(5)]))
  await until('the last request', () => begun.length > 0)
  t.equal(begun.length, 1)
})

void t.test('a client whose requests are answered goes on, though never proven', async (t) => {
  const { listener, ca } = await startFlooded(t, async () => wholeReply('ok'))
  const session = connectHttp2(`https://127.0.0.1:${listener.port}`, { ca })
  t.teardown(() => session.destroy())
  const bodies = new Set<string>()
  for (let i = 0; i < 3 * limits.unprovenStreams; i++)
    bodies.add((await openStream(session, { ':path': '/' }).whole()).body)
  t.strictSame(bodies, new Set(['ok']))
})
