import t from 'tap'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { listenOps, type OpsOptions } from '../../src/http/server/ops.ts'
import { Condition } from '../kit/condition.ts'
import { dial, type Teardown, type Wire } from '../kit/wire/wire.ts'

const head = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

/** Work that a test counts, and lets go on when it says so. */
class HeldWork {
  begun = 0
  readonly #may = Promise.withResolvers<void>()
  readonly #condition = new Condition()

  async hold(): Promise<void> {
    this.begun++
    this.#condition.changed()
    await this.#may.promise
  }

  hasBegun(): Promise<void> {
    return this.#condition.until(() => this.begun > 0)
  }

  goOn(): void {
    this.#may.resolve()
  }
}

async function listening(t: Teardown, options: Partial<OpsOptions>): Promise<() => Promise<Wire>> {
  const listener = await listenOps({
    at: [{ host: '127.0.0.1', port: 0 }],
    metrics: createMetrics(),
    ownHosts: new Set(),
    checks: [],
    verboseLines: () => [],
    ...options,
  })
  t.teardown(() => listener.close(0))
  return () => dial(t, listener.port)
}

/** What four answers on each of these connections say. */
async function bodiesOf(clients: readonly Wire[]): Promise<ReadonlySet<string>> {
  const bodies = new Set<string>()
  for (const client of clients) {
    for (let at = 0; at < 4; at++) bodies.add((await client.answer()).body)
  }
  return bodies
}

void t.test('scrapes on many connections share one exposition, and no probe waits', async (t) => {
  const metrics = createMetrics()
  const work = new HeldWork()
  const connect = await listening(t, {
    metrics: {
      connectionsCut: metrics.connectionsCut,
      exposition: async () => {
        await work.hold()
        return { contentType: 'text/plain', body: `expositions ${work.begun}\n` }
      },
    },
  })
  const scrapers = await Promise.all(Array.from({ length: 40 }, () => connect()))
  for (const scraper of scrapers) scraper.write(head('/metrics').repeat(4))
  await work.hasBegun()
  for (const path of ['/livez', '/readyz', '/readyz?verbose']) {
    t.match(await (await connect()).write(head(path)).answer(), { status: 200 }, path)
  }
  work.goOn()
  t.strictSame(await bodiesOf(scrapers), new Set(['expositions 1\n']))
  t.equal(work.begun, 1)
})

void t.test('inspections on many connections share one report, and no probe waits', async (t) => {
  const work = new HeldWork()
  const connect = await listening(t, {
    inspections: {
      reports: {
        boot: async () => {
          await work.hold()
          return { reports: work.begun }
        },
      },
      authorize: async () => true,
    },
  })
  const callers = await Promise.all(Array.from({ length: 40 }, () => connect()))
  for (const caller of callers) caller.write(head('/inspect/boot').repeat(4))
  await work.hasBegun()
  t.match(await (await connect()).write(head('/livez')).answer(), { status: 200 })
  work.goOn()
  t.strictSame(await bodiesOf(callers), new Set(['{"reports":1}\n']))
  t.equal(work.begun, 1)
})

void t.test(
  'a connection that sends requests without end is closed, and counted once',
  async (t) => {
    const reasons: string[] = []
    const metrics = createMetrics()
    const connect = await listening(t, {
      metrics: {
        ...metrics,
        connectionsCut: {
          ...metrics.connectionsCut,
          add: ({ reason }) => void reasons.push(reason),
        },
      },
    })
    for (const path of ['/metrics', '/livez', '/readyz?verbose', '/inspect/boot', '/nothing']) {
      const flood = await connect()
      flood.write(head(path).repeat(500))
      await flood.ended
      t.strictSame(reasons.splice(0), ['pipelined'], path)
    }
  },
)

void t.test('an unexpected body is dropped, and its connection goes on', async (t) => {
  const connect = await listening(t, {})
  const client = await connect()
  const size = 1024 * 1024
  client.write(`POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${size}\r\n\r\n`)
  t.match(await client.answer(), { status: 405 })
  client.write(Buffer.alloc(size)).write(head('/livez'))
  t.match(await client.answer(), { status: 200, body: 'ok' })
})

void t.test('a head without end is refused', async (t) => {
  const connect = await listening(t, {})
  const client = await connect()
  client.write(`GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(80 * 1024)}`)
  t.match(await client.answer(), { status: 431 })
  await client.ended
})

void t.test('a probe without ?verbose computes no verbose lines', async (t) => {
  let asked = 0
  const connect = await listening(t, {
    verboseLines: () => {
      asked++
      return ['[+]cloud online']
    },
  })
  t.match(await (await connect()).write(head('/readyz')).answer(), { status: 200, body: 'ok' })
  t.equal(asked, 0)
  const verbose = await (await connect()).write(head('/readyz?verbose')).answer()
  t.match(verbose.body, /cloud online/)
})
