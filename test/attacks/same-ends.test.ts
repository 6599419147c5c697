/**
 * A client resets a connection whose body the hub does not read, so that Node does not notice, and
 * connects again from the same port. The limit identified connections by the client's address and
 * port: when the first one closed, the limit forgot the second, which no longer counted.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { get, wholeReply, startListener } from '../kit/listener.ts'
import { Wire } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

/** An address of the loopback that no other program calls from. */
const localAddress = '127.77.0.2'

async function connectedFrom(
  t: Test,
  port: number,
  to: { readonly host: string; readonly localPort?: number },
): Promise<Socket> {
  const socket = connect({ port, localAddress, ...to })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

void t.test('a connection counts though one before it had the same ends', async (t) => {
  const letGo = Promise.withResolvers<void>()
  const { listener, seen, dial, cuts } = await startListener(
    t,
    async ({ body }) => {
      if (body) await letGo.promise
      return wholeReply('ok')
    },
    { maxConnections: 2 },
  )
  const first = await connectedFrom(t, listener.port, { host: '127.0.0.1' })
  const { localPort = 0 } = first
  first.write(
    `POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 600000\r\n\r\n${'x'.repeat(300_000)}`,
  )
  await until('the request', () => seen.length > 0)
  const [request] = seen
  const body = request?.body
  await until('the body to fill its buffer', () => {
    return !body || body.readableLength >= body.readableHighWaterMark
  })
  first.resetAndDestroy()
  await once(first, 'close')
  const second = new Wire(await connectedFrom(t, listener.port, { host: '127.0.0.1', localPort }))
  letGo.resolve()
  await until('the request to be aborted', () => request?.signal.aborted !== false)
  await second.write(get()).answer()
  for (let i = 0; i < 2; i++) await (await dial()).write(get()).answer()
  t.strictSame(cuts, ['full'])
  t.equal(await second.rest(), '', 'it is the oldest')
})
