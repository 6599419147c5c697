import { once } from 'node:events'
import { Writable } from 'node:stream'
import t from 'tap'
import { drainedOf } from '../../../src/http/server/drained.ts'

/** A stream that takes nothing before the test releases it. */
function stuck(): { stream: Writable; go: () => void } {
  let go: (() => void) | undefined
  const stream = new Writable({
    highWaterMark: 1,
    write: (_chunk, _encoding, done) => void (go = done),
  })
  stream.write('x')
  return { stream, go: () => go?.() }
}

void t.test('awaits of a drain share one listener', async (t) => {
  const { stream, go } = stuck()
  const drained = drainedOf(stream)
  const asked = Array.from({ length: 50 }, () => drained())
  t.equal(stream.listenerCount('drain'), 1)
  go()
  await Promise.all(asked)
  t.equal(stream.listenerCount('drain'), 0, 'nothing is left of it')
  stream.write('y')
  const again = drained()
  t.equal(stream.listenerCount('drain'), 1, 'and it can be awaited again')
  stream.destroy()
  await once(stream, 'close')
  await again
})
