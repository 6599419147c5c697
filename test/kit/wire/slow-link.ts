import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Teardown } from './wire.ts'

/** A way to a port of loopback on which each byte takes so long, either way. */
export async function slowLink(
  t: Teardown,
  to: number,
  delayMs: number,
): Promise<{ port: number }> {
  const sockets = new Set<Socket>()
  const late = (from: Socket, other: Socket): void => {
    sockets.add(from)
    from.on('data', (bytes) => void setTimeout(() => other.write(bytes), delayMs))
    from.on('error', () => undefined)
    from.on('close', () => {
      sockets.delete(from)
      setTimeout(() => other.destroy(), delayMs)
    })
  }
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: to, host: '127.0.0.1', noDelay: true })
    late(near, far)
    late(far, near)
  })
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port }
}
