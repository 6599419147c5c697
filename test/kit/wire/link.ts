import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Teardown } from './wire.ts'

export interface Link {
  readonly port: number
  /** As if packets were dropped: nothing passes any more, either way, and nobody is told. New connections are not affected. */
  cut(): void
}

/** A way to a port of loopback that can be cut without either end being told. */
export async function link(t: Teardown, to: number): Promise<Link> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect({ port: to, host: '127.0.0.1' })
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    near.pipe(far).pipe(near)
  })
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
  }
}
