import { Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { StreamSink, WaitingClient } from '../../../src/http/server/answer.ts'

interface Written {
  readonly stream: Writable
  readonly taken: string[]
  /** Has the connection take the first chunk. */
  readonly go: () => void
}

/** A sink that was given `first` and `second`, over a stream that takes nothing by itself. */
function written(): Written {
  const taken: string[] = []
  let go: (() => void) | undefined
  const stream = new Writable({ write: (_chunk, _encoding, done) => void (go ??= done) })
  const sink = new StreamSink(stream, {
    trailers: () => undefined,
    breakOff: () => undefined,
    onBroken: () => undefined,
    onTaken: () => undefined,
    client: new WaitingClient(),
  })
  for (const name of ['first', 'second']) sink.write(Buffer.from(name), () => taken.push(name))
  return { stream, taken, go: () => go?.() }
}

// As a stream of HTTP/2 does that was reset: what it had passed on may still wait in the socket.
void t.test('what a destroyed stream reports as taken may still be read', async (t) => {
  const { stream, taken, go } = written()
  stream.destroy()
  go()
  await setImmediate()
  t.strictSame(taken, [])
})

// A request that the hub ends fails at its API server, and at its client's listener.
void t.test(
  'an answer that fails twice over a stream that is closing is reported once',
  async (t) => {
    const broken: unknown[] = []
    const sink = new StreamSink(new Writable(), {
      trailers: () => undefined,
      breakOff: () => undefined,
      onBroken: (cause) => broken.push(cause),
      onTaken: () => undefined,
      client: new WaitingClient(),
    })
    const [first, second] = [new Error('at its API server'), new Error('at its listener')]
    sink.fail(first)
    sink.fail(second)
    t.strictSame(broken, [first])
  },
)
