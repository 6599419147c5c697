/**
 * What HTTP/2 connections left in memory. A peer that floods one with SETTINGS and acknowledges
 * none made Node keep the session forever, with its socket and all queued frames: 200 KB and more
 * per connection, until the kernel killed the hub. Unfinished malformed requests kept the
 * connections of clients that had disconnected.
 */
import { once } from 'node:events'
import { connect, TLSSocket } from 'node:tls'
import { queryObjects } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { defaultTimings } from '../../src/http/client/connection-timings.ts'
import { Session } from '../../src/http/client/session.ts'
import { startFlooded } from '../kit/flooding.ts'
import type { Flooding } from '../kit/flooder-main.ts'
import { until } from '../kit/until.ts'
import { authority } from '../kit/wire/certificates.ts'

/** One in ten to one in three of them was kept. */
const connections = 100

/** The last socket is still named where something waited for it. */
const held = 2

function flooder(t: Test, flooding: Flooding): Worker {
  const worker = new Worker(join(import.meta.dirname, '..', 'kit', 'flooder-main.ts'), {
    workerData: flooding,
  })
  t.teardown(() => worker.terminate())
  return worker
}

/** How many TLS sockets this thread has, after a collection of garbage. */
const sockets = (): number => queryObjects(TLSSocket, { format: 'count' })

async function fewSince(t: Test, before: number): Promise<void> {
  await until('sockets to be collected', () => sockets() <= before + held, { describe: sockets })
  t.pass('nothing is held')
}

void t.test('clients that flood the listener leave nothing behind', async (t) => {
  const { listener } = await startFlooded(t, () => new Promise(() => undefined))
  const before = sockets()
  await once(
    flooder(t, { as: 'client', by: 'settings', port: listener.port, connections, atOnce: 4 }),
    'exit',
  )
  await fewSince(t, before)
})

void t.test('an API server that floods the hub leaves nothing behind', async (t) => {
  const pki = await authority()
  const [port] = (await once(
    flooder(t, { as: 'server', shows: await pki.server() }),
    'message',
  )) as [number]
  const before = sockets()
  for (let i = 0; i < connections; i++) {
    const socket = connect({ port, host: '127.0.0.1', ca: pki.ca, ALPNProtocols: ['h2'] })
    await once(socket, 'secureConnect')
    // Either it is flooded before the server has said what it allows, or after that.
    await Session.open(`https://127.0.0.1:${port}`, socket, defaultTimings, () => undefined).catch(
      () => undefined,
    )
    if (!socket.closed) await new Promise((resolve) => void socket.once('close', resolve))
  }
  await fewSince(t, before)
})

void t.test('clients that leave malformed requests unfinished leave no connection', async (t) => {
  const { listener } = await startFlooded(t, () => new Promise(() => undefined))
  const before = sockets()
  const { port } = listener
  await once(flooder(t, { as: 'client', by: 'connect', port, connections, atOnce: 16 }), 'exit')
  await fewSince(t, before)
})
