import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Teardown } from './wire.ts'

/** What goes down the link next, and to whom. */
interface Queued {
  readonly to: Socket
  readonly bytes: Buffer
}

const sliceBytes = 1024

/**
 * A link over which answers come down one after the other, whosever they are, at so many bytes a
 * second: what is sent while a long answer is under way waits for it. Upwards it is as fast as can
 * be.
 */
export async function thinLink(
  t: Teardown,
  target: string,
  bytesPerSecond: number,
): Promise<{ url: string }> {
  const { hostname, port } = new URL(target)
  const queue: Queued[] = []
  const sockets = new Set<Socket>()
  const pace = setInterval(
    () => {
      const next = queue.shift()
      if (next) next.to.write(next.bytes)
    },
    (1000 * sliceBytes) / bytesPerSecond,
  )
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    near.pipe(far)
    far.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; at += sliceBytes) {
        queue.push({ to: near, bytes: chunk.subarray(at, at + sliceBytes) })
      }
    })
    near.on('close', () => far.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    clearInterval(pace)
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
