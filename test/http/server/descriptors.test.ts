import t from 'tap'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { LightAbort } from '../../../src/base/abort.ts'
import { acceptsPerTurn, acceptOnMoreDescriptors } from '../../../src/http/server/descriptors.ts'
import {
  bindServer,
  type BoundServer,
  type SocketHandle,
} from '../../../src/http/server/listening.ts'

const clients = 64

/** Connects from a thread of its own, and counts in shared memory what the kernel has queued. */
const connecting = `
  const { workerData: { port, count, clients } } = require('node:worker_threads')
  const queued = new Int32Array(count)
  for (let n = 0; n < clients; n++)
    require('node:net').connect(port, '127.0.0.1', () => Atomics.add(queued, 0, 1) + 1 === clients && Atomics.notify(queued, 0))
`

/**
 * How many turns of the event loop it takes to accept `clients` connections that have been queued
 * before the first.
 */
async function turnsToAccept(server: Server, { port }: BoundServer): Promise<number> {
  const count = new SharedArrayBuffer(4)
  let accepted = 0
  server.on('connection', (socket) => {
    accepted++
    socket.destroy()
  })
  const worker = new Worker(connecting, { eval: true, workerData: { port, count, clients } })
  await once(worker, 'online')
  // While this thread waits, none is accepted.
  for (const queued = new Int32Array(count); Atomics.load(queued, 0) < clients;)
    Atomics.wait(queued, 0, Atomics.load(queued, 0), 10)
  const before = accepted
  let turns = 0
  for (; accepted < clients && turns < 10 * clients; turns++) await nextTurn()
  await worker.terminate()
  return turns + before
}

async function listeningServer(t: Pick<Tap, 'teardown' | 'fail'>) {
  const server = createServer()
  const fail = (cause: unknown): void => void t.fail(String(cause))
  const bound = await bindServer(server, [{ host: '127.0.0.1', port: 0 }], fail)
  t.teardown(async () => {
    const over = once(server, 'close')
    server.close()
    await Promise.all([over, bound.closeAdditional()])
  })
  return { server, bound }
}

type Tap = typeof t

void t.test('a queue of connections is accepted several a turn', async (t) => {
  const one = await listeningServer(t)
  const slow = await turnsToAccept(one.server, one.bound)
  const several = await listeningServer(t)
  t.equal(await acceptOnMoreDescriptors(several.bound.sockets), undefined)
  const fast = await turnsToAccept(several.server, several.bound)
  t.ok(slow >= clients / 2, `${slow} turns with one descriptor`)
  t.ok(fast <= clients / (acceptsPerTurn / 2), `${fast} turns with ${acceptsPerTurn}`)
})

void t.test('closing a server frees its port on every descriptor', async (t) => {
  const server = createServer()
  const bound = await bindServer(server, [{ host: '127.0.0.1', port: 0 }], () => undefined)
  t.equal(await acceptOnMoreDescriptors(bound.sockets), undefined)
  const over = once(server, 'close')
  server.close()
  await Promise.all([over, bound.closeAdditional()])
  const next = createServer()
  next.listen(bound.port, '127.0.0.1')
  await once(next, 'listening')
  t.equal((next.address() as { port: number }).port, bound.port, 'the port is free again')
  next.close()
})

void t.test('descriptors that come when the server has closed are closed', async (t) => {
  const server = createServer()
  const bound = await bindServer(server, [{ host: '127.0.0.1', port: 0 }], () => undefined)
  const coming = acceptOnMoreDescriptors(bound.sockets)
  const over = once(server, 'close')
  server.close()
  await Promise.all([over, bound.closeAdditional(), coming])
  const next = createServer()
  next.listen(bound.port, '127.0.0.1')
  await once(next, 'listening')
  t.equal((next.address() as { port: number }).port, bound.port)
  next.close()
})

void t.test(
  'a server that closes while descriptors come back does not end the process',
  async (t) => {
    const places = ['127.0.0.1', '127.77.0.3', '127.77.0.4'].map((host) => ({ host, port: 0 }))
    const all = places.length * (acceptsPerTurn - 1)
    // The kernel decides when the next one arrives.
    for (let round = 0; round < 4 * all; round++) {
      const nth = 1 + (round % (all - 1))
      const server = createServer()
      const bound = await bindServer(server, places, () => undefined)
      const closing = new LightAbort()
      let came = 0
      const acceptOn = async (handle: SocketHandle): Promise<void> => {
        handle.close()
        if (++came === nth) queueMicrotask(() => closing.abort('closing'))
      }
      const sockets = bound.sockets.map((socket) => ({ ...socket, acceptOn, closing }))
      t.equal(await acceptOnMoreDescriptors(sockets), undefined, `after ${nth}`)
      const over = once(server, 'close')
      server.close()
      await Promise.all([over, bound.closeAdditional()])
    }
  },
)
