import t from 'tap'
import { sourceOf } from '../../../src/http/exchange/chunks.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { BytesReply } from '../../../src/http/exchange/exchange.ts'
import { withPropagationDetection } from '../../../src/hub/pipeline/propagation-detection.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const event = { type: 'ADDED', object: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' } } }

async function* body(): AsyncGenerator<readonly Uint8Array[]> {
  yield [Buffer.from(`${JSON.stringify(event)}\n`)]
}

void t.test('a watch that no cacher answers stops at a pod that is propagated', async (t) => {
  const found: string[] = []
  const layer = withPropagationDetection(() => (_gvk, _encoding, { name }) => {
    found.push(name)
    return true
  })
  const answer: BytesReply = {
    kind: 'bytes',
    from: 'cloud',
    status: 200,
    headers: new HeaderList(['Content-Type', 'application/json']),
    source: sourceOf(body()),
  }
  const exchange = exchangeOf('/api/v1/pods?watch=true', {
    headers: { Accept: 'application/json' },
  })
  const reply = await layer(async () => answer)(exchange)
  if (reply.kind !== 'watch') throw new Error(`the answer is passed as ${reply.kind}`)
  await t.rejects(reply.events[Symbol.asyncIterator]().next(), /has propagated a pod/)
  t.strictSame(found, ['a'])
})
