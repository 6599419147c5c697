import t from 'tap'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { mostWatchers } from '../../../src/http/server/inspections.ts'
import { listenOps } from '../../../src/http/server/ops.ts'
import { until } from '../../kit/until.ts'
import { dial, type Teardown, type Wire } from '../../kit/wire/wire.ts'

async function serving(t: Teardown, report: () => object): Promise<() => Promise<Wire>> {
  const listener = await listenOps({
    at: [{ host: '127.0.0.1', port: 0 }],
    metrics: createMetrics(),
    ownHosts: new Set(),
    checks: [],
    verboseLines: () => [],
    inspections: { reports: { state: async () => report() }, authorize: async () => true },
  })
  t.teardown(() => listener.close(0))
  return () => dial(t, listener.port)
}

const head = (path: string, fields = '', method = 'GET'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n`

const watching = head('/inspect/state?watch=true')

const statusOf = ({ line }: { readonly line: string }): number => Number(line.split(' ')[1])

void t.test('a watcher is sent the whole report, and then what changes of it', async (t) => {
  let report: object = { online: true, since: 'then', pods: ['a'] }
  const client = await (await serving(t, () => report))()
  const { line, fields } = await client.write(watching).head()
  t.equal(statusOf({ line }), 200)
  t.ok(fields.includes('text/event-stream'))
  t.equal(await client.chunk(), 'data: {"online":true,"since":"then","pods":["a"]}\n\n')
  report = { online: false, pods: ['a'] }
  t.equal(await client.chunk(), 'data: {"online":false,"since":null}\n\n')
})

void t.test('watchers are limited, and the next is refused until one leaves', async (t) => {
  const connect = await serving(t, () => ({}))
  const watchers = await Promise.all(Array.from({ length: mostWatchers }, () => connect()))
  for (const watcher of watchers) t.equal(statusOf(await watcher.write(watching).head()), 200)
  t.match(await (await connect()).write(watching).answer(), { status: 503, body: /8 clients/ })
  t.match(await (await connect()).write(head('/inspect/state')).answer(), { status: 200 })
  watchers[0]?.destroy()
  const again = await until('a place among the watchers', async () => {
    const client = await connect()
    return statusOf(await client.write(watching).head()) === 200
  })
  t.ok(again)
})

void t.test('a page of another site is not shown a report, nor one of another port', async (t) => {
  const connect = await serving(t, () => ({}))
  const from = async (site: string): Promise<number> =>
    statusOf(
      await (
        await connect()
      )
        .write(head('/inspect/state', `Sec-Fetch-Site: ${site}\r\nConnection: close\r\n`))
        .answer(),
    )
  t.equal(await from('cross-site'), 403)
  t.equal(await from('same-site'), 403)
  t.equal(await from('same-origin'), 200)
  t.equal(await from('none'), 200, 'typed into the address bar')
})

void t.test('a HEAD for a watch is answered to its end', async (t) => {
  const connect = await serving(t, () => ({}))
  const client = await connect()
  t.match(await client.write(head('/inspect/state?watch=true', '', 'HEAD')).answer('HEAD'), {
    status: 200,
  })
})
