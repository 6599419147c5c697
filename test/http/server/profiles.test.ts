import t from 'tap'
import { createMetrics } from '../../../src/metrics/metrics.ts'
import { listenOps } from '../../../src/http/server/ops.ts'
import type { Profiling } from '../../../src/http/server/profiles.ts'
import { until } from '../../kit/until.ts'
import { dial, type Answer, type Teardown, type Wire } from '../../kit/wire/wire.ts'

async function listening(t: Teardown, profiling?: Profiling) {
  const listener = await listenOps({
    metrics: createMetrics(),
    ownHosts: new Set(['ops']),
    checks: [],
    verboseLines: () => [],
    at: [{ host: '127.0.0.1', port: 0 }],
    ...(profiling && { profiling }),
  })
  t.teardown(() => listener.close(0))
  const send = async (target: string, method = 'POST', more = ''): Promise<Wire> => {
    const client = await dial(t, listener.port)
    return client.write(
      `${method} ${target} HTTP/1.1\r\nHost: ops\r\nConnection: close\r\nContent-Length: 0\r\n${more}\r\n`,
    )
  }
  const ask = async (...sent: Parameters<typeof send>): Promise<Answer> =>
    (await send(...sent)).answer()
  return { send, ask }
}

const forAll: Profiling = { authorize: async () => true }

void t.test('a profile shows functions, and a snapshot objects', async (t) => {
  const { ask } = await listening(t, forAll)
  const cpu = JSON.parse((await ask('/debug/cpu?seconds=1')).body) as { nodes: object[] }
  t.ok(cpu.nodes.length > 0)
  const heap = JSON.parse((await ask('/debug/heap?seconds=1')).body) as { head: object }
  t.match(heap.head, { callFrame: { functionName: '(root)' } })
  const snapshot = await ask('/debug/heap-snapshot')
  t.equal(snapshot.status, 200)
  t.match(snapshot.body.slice(0, 100), /^{"snapshot":/)
})

void t.test('one profile is made at a time, and a client that leaves ends it', async (t) => {
  const { send, ask } = await listening(t, forAll)
  const statusOf = async (target: string): Promise<number> => (await ask(target)).status
  for (const target of ['/debug/heap-snapshot', '/debug/cpu?seconds=60']) {
    const first = await send(target)
    const refused = await until(
      'the first to be made',
      async () => (await statusOf('/debug/heap?seconds=1')) === 409,
    )
    t.ok(refused, target)
    first.destroy()
    const free = await until(
      'it to have ended',
      async () => (await statusOf('/debug/cpu?seconds=1')) === 200,
    )
    t.ok(free, target)
  }
})

void t.test('only an authorized caller gets a profile', async (t) => {
  const nobody = await listening(t, { authorize: async () => false })
  t.match(await nobody.ask('/debug/heap-snapshot'), { status: 403, body: /for root of this node/ })
  const { ask } = await listening(t, forAll)
  t.equal((await ask('/debug/cpu', 'POST', 'Sec-Fetch-Site: same-origin\r\n')).status, 403)
  t.equal((await ask('/debug/cpu', 'GET')).status, 405)
  for (const seconds of ['0', '61', 'x'])
    t.equal((await ask(`/debug/cpu?seconds=${seconds}`)).status, 400, seconds)
  t.equal((await (await listening(t)).ask('/debug/cpu')).status, 405, 'or where there is none')
})
