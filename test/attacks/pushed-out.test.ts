/**
 * Connections that send nothing are as many as a program likes. While they filled what connections
 * without a proven caller may be, one of a caller about to show that it is the node was closed for
 * each further one, with a request under way.
 */
import t, { type Test } from 'tap'
import type { Incoming } from '../../src/http/exchange/exchange.ts'
import { get, wholeReply, startListener } from '../kit/listener.ts'
import { dial } from '../kit/wire/wire.ts'

/** Opens connections; the last of them has been served, so that the others were accepted. */
async function open(t: Test, port: number, connections: number): Promise<void> {
  for (let i = 1; i < connections; i++) await dial(t, port)
  await (await dial(t, port)).write(get()).answer()
}

void t.test('idle connections evict no connection with a pending lookup', async (t) => {
  const seen = Promise.withResolvers<void>()
  const letGo = Promise.withResolvers<void>()
  // The hub identifies the node when this is released.
  const handler = async ({ url, onProven }: Incoming) => {
    if (url !== '/node') return wholeReply('')
    seen.resolve()
    await letGo.promise
    onProven?.(true)
    return wholeReply('ok')
  }
  const { listener, cuts } = await startListener(t, handler, {
    maxConnections: 1_000,
    mostUnproven: 50,
  })
  await open(t, listener.port, 60)
  const program = (await dial(t, listener.port)).write(get('/node'))
  await seen.promise
  await open(t, listener.port, 20)
  t.ok(cuts.length >= 20, 'their number was the limit')
  letGo.resolve()
  t.equal((await program.answer()).body, 'ok')
})
