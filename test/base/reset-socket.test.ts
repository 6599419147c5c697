import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { resetSocket } from '../../src/base/reset-socket.ts'

/** Both ends of a connection. */
async function connected(t: Test): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const far = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
  t.teardown(() => far.destroy())
  const [near] = (await once(server, 'connection')) as [Socket]
  return { near, far }
}

void t.test('the other end sees a reset', async (t) => {
  const { near, far } = await connected(t)
  const broken = once(far, 'error')
  resetSocket(near)
  t.match(await broken, [{ code: 'ECONNRESET' }])
})

void t.test('a socket whose end is being sent is closed without an error', async (t) => {
  const { near, far } = await connected(t)
  near.on('error', (error) => t.fail(error.message))
  const closed = once(near, 'close')
  const ended = once(far.resume(), 'end')
  near.end()
  resetSocket(near)
  await Promise.all([closed, ended])
  t.ok(near.destroyed)
})
