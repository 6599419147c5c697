import { once } from 'node:events'
import { createServer, type ListenOptions } from 'node:net'

/**
 * A port that nothing listens on at either address of loopback, and that no other process takes by
 * this function until this one ends: a server that is down for a while finds its port still free
 * when it comes back. It lies below the range the kernel draws outgoing ports from and below node
 * ports.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = 12_000 + Math.floor(Math.random() * 17_000)
    if ((await isBindable(port)) && (await isReserved(port))) return port
  }
  throw new Error('no free port on 127.0.0.1 in a hundred attempts')
}

const isBindable = async (port: number): Promise<boolean> =>
  (await isFree({ host: '127.0.0.1', port })) && (await isFree({ host: '::1', port }))

/**
 * The reservation is a socket in the abstract namespace of Linux: the kernel has one for each
 * network, and ends it with its process.
 */
const isReserved = (port: number): Promise<boolean> =>
  isFree({ path: `\0nodehub-test-port-${port}` }, true)

async function isFree(address: ListenOptions, isKept = false): Promise<boolean> {
  const server = createServer()
  server.listen(address)
  try {
    await once(server, 'listening')
  } catch (cause) {
    // A host without IPv6 has nothing there that could be taken.
    return (cause as NodeJS.ErrnoException).code !== 'EADDRINUSE'
  }
  if (isKept) {
    server.unref()
    return true
  }
  server.close()
  await once(server, 'close')
  return true
}
