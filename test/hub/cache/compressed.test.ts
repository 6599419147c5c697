import t from 'tap'
import { gzipSync } from 'node:zlib'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { ByteSource, ListReply, Sink } from '../../../src/http/exchange/exchange.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { page, pods, recordingIn } from './recording.ts'

const versions = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`pod-${i}`, i + 1]))
const whole = gzipSync(page(40_000, versions))

/** A compressed list that the test lets come, as a client that takes it so is given it. */
async function begun(cache: Awaited<ReturnType<typeof recordingIn>>) {
  const headers = { Accept: 'application/json', 'Accept-Encoding': 'gzip' }
  const exchange = exchangeOf(pods, { headers })
  const what = cache.recorder.plan(exchange)
  if (!what) throw new Error('pods are recorded')
  const { promise, resolve } = Promise.withResolvers<Sink>()
  const source: ByteSource = (sink) => {
    resolve(sink)
    sink.write(whole.subarray(0, 20_000))
    return () => undefined
  }
  const fields = ['Content-Type', 'application/json', 'Content-Encoding', 'gzip']
  const reply = await cache.recorder.record(what, exchange, {
    kind: 'bytes',
    status: 200,
    headers: new HeaderList(fields),
    from: 'cloud',
    source,
  })
  return { reply: reply as ListReply, sink: await promise }
}

void t.test('the end of a compressed list leaves when the list is committed', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const { reply, sink } = await begun(cache)
  const passed: Uint8Array[] = []
  const parts = reply.upstreamBody
  if (!parts) throw new Error('the list is given as it came')
  sink.write(whole.subarray(20_000, 60_000))
  for (let at = 60_000; at < whole.length; at += 10_000) {
    passed.push(...(((await parts.next()).value ?? []) as Uint8Array[]))
    t.equal(cache.version(), undefined, 'nothing is committed')
    sink.write(whole.subarray(at, at + 10_000))
  }
  sink.end()
  for await (const group of parts) {
    passed.push(...group)
    const isWhole = Buffer.concat(passed).length === whole.length
    t.equal(cache.version(), isWhole ? '40000' : undefined)
  }
  t.ok(Buffer.concat(passed).equals(whole))
  t.equal(cache.names().length, 30_000)
})
