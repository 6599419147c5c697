import { createServer, type RequestListener } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { LoadProcess } from '../../bench/load/load-process.ts'
import { haproxy } from '../../bench/peers/haproxy.ts'
import type { RunningPeer } from '../../bench/peers/peer.ts'
import { getRecorded } from '../../bench/scenarios/get.ts'
import { crowd } from '../../bench/scenarios/crowd.ts'
import { fanOut50 } from '../../bench/scenarios/fan-out.ts'
import { listGzip, listProtobuf } from '../../bench/scenarios/list.ts'
import type { Setting } from '../../bench/scenarios/scenario.ts'
import { watchJson } from '../../bench/scenarios/watch.ts'
import { sandboxUpstream } from '../../bench/upstream/sandbox.ts'
import { podCount, seed } from '../../bench/upstream/seed.ts'
import { openWorkspace } from '../kit/cluster/workspace.ts'

/** Whether a row measures at all shows in any time. */
const seconds = 0.2

/** Load processes that end with the test. */
function loads(t: Test): Pick<Setting, 'load' | 'writer'> {
  const both = { load: new LoadProcess(), writer: new LoadProcess() }
  t.teardown(async () => {
    await both.load[Symbol.asyncDispose]()
    await both.writer[Symbol.asyncDispose]()
  })
  return both
}

/** A server that answers as `listener` does. */
async function serving(t: Test, listener: RequestListener): Promise<RunningPeer> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { name: 'server', description: 'in the test', target: { url } }
}

void t.test('rows run against the API server in memory and give sane figures', async (t) => {
  const upstream = await sandboxUpstream(t)
  await seed(upstream.admin)
  const setting = { ...loads(t), direct: upstream.node, admin: upstream.admin, seconds }
  const direct: RunningPeer = { name: 'direct', description: '', target: upstream.node }

  await t.test('GET', async (t) => {
    await getRecorded.prime(direct, setting)
    const { figures, failures, loadShare } = await getRecorded.measure(direct, setting)
    t.strictSame(failures, {})
    t.ok(positive(figures['rate']) && positive(figures['p50']))
    t.ok(Number(figures['p99']) >= Number(figures['p50']))
    t.equal(figures['cpu'], undefined, 'there is no proxy that could take any')
    t.ok(loadShare > 0)
  })

  await t.test('LIST', async (t) => {
    await listProtobuf.prime(direct, setting)
    const { figures, failures } = await listProtobuf.measure(direct, setting)
    t.strictSame(failures, {})
    t.ok(positive(figures['firstByte']))
    t.ok(Number(figures['time']) >= Number(figures['firstByte']))
  })

  await t.test('WATCH', async (t) => {
    const { figures, failures } = await watchJson.measure(direct, setting)
    const { ['the API server did not take the writes in time']: slow, ...others } = failures
    t.comment(`a slow machine: ${slow ?? 0}`)
    t.strictSame(others, {}, 'no event is lost')
    t.ok(positive(figures['delayP50']))
    t.ok(Number(figures['addedP99']) >= Number(figures['addedP50']))
  })

  await t.test('LIST compressed', async (t) => {
    await listGzip.prime(direct, setting)
    const { figures, failures } = await listGzip.measure(direct, setting)
    t.strictSame(failures, {})
    t.ok(positive(figures['size']))
  })

  await t.test('WATCH six hundredfold', async (t) => {
    const { figures, failures } = await crowd.measure(direct, setting)
    const { ['the API server did not take the writes in time']: slow, ...others } = failures
    t.comment(`a slow machine: ${slow ?? 0}`)
    t.strictSame(others, {}, 'no event is lost')
    t.equal(figures['connections'], 600, 'each has a connection of its own')
  })

  await t.test('WATCH of the same by fifty', async (t) => {
    await fanOut50.prime(direct, setting)
    const { figures, failures } = await fanOut50.measure(direct, setting)
    const { ['the API server did not take the writes in time']: slow, ...others } = failures
    t.comment(`a slow machine: ${slow ?? 0}`)
    t.strictSame(others, {}, 'no event is lost, and none comes twice')
    t.ok(positive(figures['delayP50']))
  })

  const missing = haproxy.missing()
  await t.test('a proxy between, with what it takes', { skip: missing ?? false }, async (t) => {
    const peer = await haproxy.start(upstream, openWorkspace(t))
    await listProtobuf.prime(peer, setting)
    const { figures, failures } = await listProtobuf.measure(peer, setting)
    t.strictSame(failures, {})
    t.ok(positive(figures['memory']))
    t.ok(Number(figures['cpu']) >= 0)
  })
})

void t.test('an answer of another length than the API server gave is a failure', async (t) => {
  const direct = await serving(t, (_request, response) => response.end('x'.repeat(100)))
  const cutting = await serving(t, (_request, response) => response.end('x'.repeat(90)))
  const setting = { ...loads(t), direct: direct.target, admin: direct.target, seconds }
  await getRecorded.prime(cutting, setting)
  const { figures, failures } = await getRecorded.measure(cutting, setting)
  t.strictSame(Object.keys(failures), ['90 bytes for 100'])
  t.equal(figures['rate'], 0)
})

void t.test('an answer that breaks off is a failure, and the load goes on', async (t) => {
  let count = 0
  const peer = await serving(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': 100 })
    count += 1
    // Only once all sizes are known and the peer is warm.
    if (count > 3 * podCount && count % 10 === 0) response.write('x', () => response.destroy())
    else response.end('x'.repeat(100))
  })
  const setting = { ...loads(t), direct: peer.target, admin: peer.target, seconds }
  await getRecorded.prime(peer, setting)
  const { figures, failures } = await getRecorded.measure(peer, setting)
  t.strictSame(Object.keys(failures), ['the connection was closed'])
  t.ok(positive(figures['rate']))
})

void t.test('a list that is not whole is refused', async (t) => {
  const peer = await serving(t, (_request, response) => response.end('k8s\0'))
  const setting = { ...loads(t), direct: peer.target, admin: peer.target, seconds }
  await t.rejects(listProtobuf.measure(peer, setting), /a list of 0 instead of 500 pods/)
})

const positive = (figure: number | undefined): boolean => figure !== undefined && figure > 0
