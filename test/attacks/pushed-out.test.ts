/**
 * Connections that send nothing are the lightest of all. While they filled what connections without
 * a proven caller may hold, each further one closed the heaviest: that of a caller about to show
 * that it is the node, with a request under way, or in its TLS handshake.
 */
import { connect as connectSecurely } from 'node:http2'
import t, { type Test } from 'tap'
import type { Incoming } from '../../src/http/exchange/exchange.ts'
import { nodeIdentity } from '../../src/api/request/identity.ts'
import { ConnectionMemory } from '../../src/http/server/connection-memory.ts'
import { startFlooded } from '../kit/flooding.ts'
import { get, wholeReply, startListener } from '../kit/listener.ts'
import { dial } from '../kit/wire/wire.ts'

/** Half of it holds 51 connections without TLS. */
const limitBytes = 8 * 1024 * 1024

/** The hub identifies the node when this is released. */
function heldHandler() {
  const seen = Promise.withResolvers<void>()
  const letGo = Promise.withResolvers<void>()
  const handler = async ({ url, onProven }: Incoming) => {
    if (url !== '/node') return wholeReply('')
    seen.resolve()
    await letGo.promise
    onProven?.(nodeIdentity)
    return wholeReply('ok')
  }
  return { handler, seen: seen.promise, letGo: letGo.resolve }
}

/** Opens connections; the last of them has been served, so that the others were accepted. */
async function open(t: Test, port: number, connections: number): Promise<void> {
  for (let i = 1; i < connections; i++) await dial(t, port)
  await (await dial(t, port)).write(get()).answer()
}

void t.test('idle connections evict no connection with a pending lookup', async (t) => {
  const { handler, seen, letGo } = heldHandler()
  const memory = new ConnectionMemory(limitBytes)
  const { listener, cuts } = await startListener(t, handler, { memory, maxConnections: 1_000 })
  await open(t, listener.port, 60)
  const program = (await dial(t, listener.port)).write(get('/node'))
  await seen
  await open(t, listener.port, 20)
  t.ok(cuts.length >= 20, 'memory was the limit')
  letGo()
  t.equal((await program.answer()).body, 'ok')
})

void t.test('idle connections evict no HTTP/2 session with a pending lookup', async (t) => {
  const { handler, seen, letGo } = heldHandler()
  const { listener, memory, cuts, ca } = await startFlooded(t, handler, { limitBytes })
  const plain = await startListener(t, handler, { memory, maxConnections: 1_000 })
  await open(t, plain.listener.port, 60)
  const session = connectSecurely(`https://127.0.0.1:${listener.port}`, { ca })
  t.teardown(() => session.destroy())
  const stream = session.request({ ':path': '/node' })
  const status = new Promise<unknown>((resolve) => {
    stream.once('response', (fields) => resolve(fields[':status']))
    for (const each of [session, stream]) each.once('error', resolve)
  })
  await Promise.race([seen, status])
  await open(t, plain.listener.port, 20)
  t.ok(cuts.length + plain.cuts.length >= 20, 'memory was the limit')
  letGo()
  t.equal(await status, 200)
})
