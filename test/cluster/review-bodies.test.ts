import { PassThrough } from 'node:stream'
import t from 'tap'
import { LightAbort } from '../../src/base/abort.ts'
import {
  largestBody,
  leastBytes,
  mostQueued,
  ReviewBodies,
} from '../../src/cluster/review-bodies.ts'
import type { Incoming } from '../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../src/http/exchange/headers.ts'
import { StatusError } from '../../src/api/kube/status.ts'

/** A review whose body has been announced, and does not come. */
const announced = (from: string, bytes = largestBody, body = new PassThrough()): Incoming => ({
  id: 'r',
  method: 'POST',
  url: '/mutate/nodes',
  headers: new HeaderList(['Content-Length', String(bytes)]),
  peer: { address: from, port: 40_000, localAddress: '127.0.0.1', localPort: 9_443 },
  body,
  upgrade: false,
  signal: new LightAbort(),
})

void t.test('a full queue sheds the latest body of the address with most waiting', async (t) => {
  const shed: string[] = []
  using bodies = new ReviewBodies(largestBody, (why) => shed.push(why))
  const refused: string[] = []
  const read = (from: string, name: string): void =>
    void bodies.read(announced(from)).catch((cause: unknown) => {
      t.equal(cause instanceof StatusError && cause.status.code, 429)
      refused.push(name)
    })
  read('10.0.0.1', 'has the room')
  for (let i = 0; i < mostQueued; i++) read('10.0.0.1', `waits as ${i}`)
  await new Promise(setImmediate)
  t.strictSame(refused, [])
  read('10.0.0.2', 'comes last')
  await new Promise(setImmediate)
  t.strictSame(refused, [`waits as ${mostQueued - 1}`])
  t.strictSame(shed, ['full'])
})

void t.test('stalled large bodies from any addresses block no small ones', async (t) => {
  using bodies = new ReviewBodies(largestBody + 4 * leastBytes, () => undefined)
  for (let host = 1; host <= 8; host++)
    for (let n = 0; n < 2; n++) void bodies.read(announced(`10.0.0.${host}`)).catch(() => undefined)
  for (let n = 0; n < 4; n++) {
    const content = Buffer.from('{"kind":"AdmissionReview"}')
    const body = new PassThrough().end(content) as PassThrough
    using read = await bodies.read(announced('10.0.1.1', content.byteLength, body))
    t.strictSame(read.content, content)
  }
})
