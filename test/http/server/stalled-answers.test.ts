/** How long an answer waits for its client, by a clock that the test sets forward. */
import { EventEmitter, once } from 'node:events'
import t, { type Test } from 'tap'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { listenOps } from '../../../src/http/server/ops.ts'
import { startFlooded } from '../../kit/flooding.ts'
import { get as getOver2 } from '../../kit/http2-frames.ts'
import { scriptedReply, get, provenAs, startListener } from '../../kit/listener.ts'
import { setClock } from '../../kit/set-clock.ts'
import { dial, type Wire } from '../../kit/wire/wire.ts'

/** Sends a request and reads the head, and nothing more. */
async function readingNothing(client: Wire, path: string): Promise<void> {
  await client.write(get(path)).head()
  client.socket.pause()
}

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

const listeners: Readonly<
  Record<string, readonly [number, (t: Test) => Promise<readonly string[]>]>
> = {
  'of a caller that is not proven 5 seconds': [
    5_000,
    async (t) => {
      const { dial, cuts } = await startListener(t, endless)
      await readingNothing(await dial(), '/')
      return cuts
    },
  ],
  // Over HTTP/1.1 Node's own timer of the socket has the same time.
  'of a proven caller over HTTP/2 2 minutes': [
    120_000,
    async (t) => {
      const { dial, cuts } = await startFlooded(t, provenAs(endless))
      const client = await dial()
      const waiting = once(written, 'full')
      client.write(getOver2(1))
      await waiting
      return cuts
    },
  ],
  'of probes and scrapers 10 seconds': [
    10_000,
    async (t) => {
      const cuts: string[] = []
      const listener = await listenOps({
        at: [{ host: '127.0.0.1', port: 0 }],
        ownHosts: new Set(['hub']),
        checks: [],
        verboseLines: () => [],
        metrics: {
          connectionsCut: {
            ...createMetrics().connectionsCut,
            add: ({ reason }) => void cuts.push(reason),
          },
          exposition: async () => ({ contentType: 'text/plain', body: 'x'.repeat(64 << 20) }),
        },
      })
      t.teardown(() => listener.close(0))
      await readingNothing(await dial(t, listener.port), '/metrics')
      return cuts
    },
  ],
}

/** What waits for a proven caller has its own time, by its size. */
const leewayMs = 2_500

for (const [whose, [ms, stalling]] of Object.entries(listeners)) {
  void t.test(`an answer that its client does not take waits ${whose}`, async (t) => {
    const clock = setClock(t)
    const cuts = await stalling(t)
    clock.forward(ms - 1)
    t.strictSame(cuts, [])
    clock.forward(ms === 120_000 ? leewayMs : 1)
    t.strictSame(cuts, ['stalled'])
  })
}
