import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { resetSocket } from '../../../src/base/reset-socket.ts'
import type { Teardown } from './wire.ts'

export interface Link {
  readonly port: number
  /**
   * As if packets were dropped: nothing passes any more, either way, and nobody is told. New
   * connections are not affected.
   */
  cut(): void
  /** Every connection is reset; new ones are not affected. */
  reset(): void
  /**
   * Every connection is reset, and every new one as soon as it is made, until the link is up again.
   */
  down(): void
  up(): void
}

/** A way to a port of loopback that can be broken. */
export async function link(t: Teardown, to: number): Promise<Link> {
  const sockets = new Set<Socket>()
  let isDown = false
  const server = createServer((near) => {
    near.on('error', () => undefined)
    if (isDown) {
      resetSocket(near)
      return
    }
    const far = connect({ port: to, host: '127.0.0.1' })
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    near.pipe(far).pipe(near)
  })
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const reset = (): void => {
    for (const socket of sockets) resetSocket(socket)
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
    reset,
    down: () => {
      isDown = true
      reset()
    },
    up: () => {
      isDown = false
    },
  }
}
