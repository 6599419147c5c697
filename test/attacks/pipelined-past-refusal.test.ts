/**
 * What follows a malformed request is not answered, but Node creates a response for each request in
 * it, and keeps them until the answers before it have gone. Behind a watch that is forever: 10 MB
 * of such requests once held 180 MB on one connection.
 */
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { limits } from '../../src/http/server/limits.ts'
import { get, wholeReply, startListener } from '../kit/listener.ts'

const malformed = 'GET / HTTP/1.1\r\n\r\n'
const server = 'OPTIONS * HTTP/1.1\r\nHost: hub\r\n\r\n'

/**
 * Behind an answer that does not come; resolves when the connection is closed, with why it was cut.
 */
async function pipelined(t: Test, first: string, unit: string): Promise<readonly string[]> {
  const { listener, cuts } = await startListener(t, () => new Promise(() => undefined))
  const socket = connect(listener.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined)
  socket.write(get() + first + unit.repeat(10 * limits.pipelined))
  await closed
  return cuts
}

for (const [what, first, unit] of [
  ['requests', '', get()],
  ['requests after a malformed one', malformed, get()],
  ['requests with an expectation', '', get('/', 'Expect: miracles')],
  ['questions about the server itself', '', server],
] as const) {
  void t.test(`${what} are bounded like pipelined requests`, async (t) => {
    const cuts = await pipelined(t, first, unit)
    t.strictSame(cuts, ['pipelined'])
  })
}

void t.test('an unknown expectation gets 417, and ends its connection', async (t) => {
  const { dial, seen } = await startListener(t, async () => wholeReply('ok'))
  const client = (await dial()).write(get('/', 'Expect: miracles') + get())
  t.equal((await client.answer()).status, 417)
  t.equal(await client.rest(), '')
  t.equal(seen.length, 0)
})
