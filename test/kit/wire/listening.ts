import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Teardown } from './wire.ts'

/**
 * Has a server listen at a port of loopback, to which this resolves, until the test ends, and its
 * connections with it.
 */
export async function portOf(t: Teardown, server: Server, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
