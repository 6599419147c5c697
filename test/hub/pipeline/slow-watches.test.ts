import { finished } from 'node:stream/promises'
import t from 'tap'
import type { Sink } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { SlowWatches } from '../../../src/hub/pipeline/slow-watches.ts'
import { listen } from '../../../src/http/server/listener.ts'
import { Client } from '../../kit/client.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const megabyte = 1024 * 1024

/** Far more than sockets and the kernel take on the way. */
const frame = 12 * megabyte

void t.test(
  'where untaken watches hold too much together, the largest is broken off',
  async (t) => {
    let ended = 0
    const watches = new SlowWatches(4 * 3.5 * frame, () => ended++)
    const sinks = new Map<string, Sink>()
    const serve = watches.bounding(async ({ url }) => ({
      kind: 'bytes',
      from: 'cloud',
      status: 200,
      headers: new HeaderList(),
      source: (sink) => {
        sinks.set(url, sink)
        return () => sinks.delete(url)
      },
    }))
    const listener = await listen({
      at: [{ host: '127.0.0.1', port: 0 }],
      maxConnections: 100,
      onBroken: () => undefined,
      handler: (incoming) => serve({ ...exchangeOf(incoming.url), ...incoming }),
    })
    t.teardown(() => listener.close(0))
    const client = new Client({ url: `http://127.0.0.1:${listener.port}`, component: 'operator' })
    const untaken = ['/api/v1/pods?watch=1', '/api/v1/services?watch=1', '/api/v1/nodes?watch=1']
    const answers = []
    for (const url of untaken) {
      answers.push(await client.open(url))
      sinks.get(url)?.write(Buffer.alloc(frame))
    }
    t.equal(ended, 0)
    const [first, greedy] = answers
    const [, greedyUrl = ''] = untaken
    sinks.get(greedyUrl)?.write(Buffer.alloc(frame))
    t.equal(ended, 1)
    t.equal(sinks.has(greedyUrl), false, 'its source ends')
    if (greedy) await t.rejects(finished(greedy.resume()), 'its client sees the break')
    t.equal(watches.held, 2 * frame)
    first?.resume()
    await sinks.get(untaken[0] ?? '')?.drained()
    t.equal(watches.held, frame, 'what is taken is held no longer')
  },
)
