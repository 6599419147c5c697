/** How long an answer waits for its client, by a clock that the test sets forward. */
import { EventEmitter, once } from 'node:events'
import t from 'tap'
import { startFlooded } from '../../kit/flooding.ts'
import { get as getOver2 } from '../../kit/http2-frames.ts'
import { scriptedReply } from '../../kit/listener.ts'
import { setClock } from '../../kit/set-clock.ts'

/** Says when an answer has to wait for its client. */
const written = new EventEmitter()

/** An answer that continues for as long as its client reads. */
const endless = async () =>
  scriptedReply((sink) => {
    let over = false
    const write = async (): Promise<void> => {
      while (!over)
        if (!sink.write(Buffer.alloc(64 * 1024))) {
          written.emit('full')
          await sink.drained()
        }
    }
    void write()
    return () => {
      over = true
    }
  })

// Over HTTP/1.1 Node's own timer of the socket has the same time.
void t.test('an answer over HTTP/2 that its client does not take waits 2 minutes', async (t) => {
  const clock = setClock(t)
  const { dial, cuts } = await startFlooded(t, endless)
  const client = await dial()
  const waiting = once(written, 'full')
  client.write(getOver2(1))
  await waiting
  clock.forward(119_999)
  t.strictSame(cuts, [])
  // What waits has time by its size, too.
  clock.forward(10_000)
  t.strictSame(cuts, ['stalled'])
})
