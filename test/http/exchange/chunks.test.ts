import t from 'tap'
import { Chunks } from '../../../src/http/exchange/chunks.ts'
import type { Sink } from '../../../src/http/exchange/exchange.ts'

/** Chunks over a source that the test plays. */
function open(): { chunks: Chunks; sink: Sink; givenUp: () => number } {
  let opened: Sink | undefined
  let gaveUp = 0
  const chunks = new Chunks((sink) => {
    opened = sink
    return () => gaveUp++
  })
  if (!opened) throw new Error('a source is called at once')
  return { chunks, sink: opened, givenUp: () => gaveUp }
}

const text = (chunks: readonly Uint8Array[]): string[] =>
  chunks.map((chunk) => Buffer.from(chunk).toString())

void t.test(
  'chunks come out in the order in which they came, together where they waited',
  async (t) => {
    const { chunks, sink, givenUp } = open()
    sink.write(Buffer.from('a'))
    sink.write(Buffer.from('b'))
    const seen: string[][] = []
    for await (const group of chunks) {
      seen.push(text(group))
      if (seen.length === 1) setImmediate(() => sink.write(Buffer.from('c')))
      if (seen.length === 2) setImmediate(() => sink.end())
    }
    t.strictSame(seen, [['a', 'b'], ['c']])
    t.equal(givenUp(), 0)
  },
)

void t.test('pending chunks are delivered before the source’s end or failure', async (t) => {
  for (const fails of [false, true]) {
    const { chunks, sink } = open()
    sink.write(Buffer.from('a'))
    if (fails) sink.fail(new Error('cut'))
    else sink.end()
    const seen: string[][] = []
    const all = (async () => {
      for await (const group of chunks) seen.push(text(group))
    })()
    if (fails) await t.rejects(all, { code: 'BROKEN_STREAM', cause: { message: 'cut' } })
    else await all
    t.strictSame(seen, [['a']])
  }
})

void t.test('trailers are known once it is over, and where there are none that too', async (t) => {
  for (const trailers of [['X-T', '1'], undefined]) {
    const { chunks, sink } = open()
    sink.end(trailers)
    for await (const _ of chunks) t.fail('there is nothing')
    t.strictSame(chunks.trailers, trailers)
  }
})

void t.test('a source that is far ahead waits until its chunks are read', async (t) => {
  const { chunks, sink } = open()
  const half = Buffer.alloc(512 * 1024)
  t.equal(sink.write(half), true)
  await sink.drained()
  t.equal(sink.write(half), false)
  let drained = false
  const waiting = sink.drained().then(() => {
    drained = true
  })
  await new Promise(setImmediate)
  t.equal(drained, false)
  const iterator = chunks[Symbol.asyncIterator]()
  const { value } = await iterator.next()
  t.equal((value as readonly Uint8Array[]).length, 2)
  await waiting
  t.equal(sink.write(half), true)
})

void t.test('a reader that stops early cancels the source once, and unblocks it', async (t) => {
  const { chunks, sink, givenUp } = open()
  sink.write(Buffer.from('a'))
  for await (const _ of chunks) {
    sink.write(Buffer.alloc(2 * 1024 * 1024))
    break
  }
  t.equal(givenUp(), 1)
  await sink.drained()
})

void t.test('an ended source is taken whole without waiting, and only once', async (t) => {
  const { chunks, sink, givenUp } = open()
  sink.write(Buffer.from('a'))
  t.equal(chunks.takeWhole(), undefined, 'there may be more')
  sink.write(Buffer.from('b'))
  sink.end()
  t.strictSame(text(chunks.takeWhole() ?? []), ['a', 'b'])
  for await (const _ of chunks) t.fail('given twice')
  t.equal(givenUp(), 0)
})
