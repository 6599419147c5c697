import { once } from 'node:events'
import { createServer } from 'node:net'

const handedOut = new Set<number>()

/**
 * A port that nothing listens on at either address of loopback. It lies below the range the kernel
 * draws outgoing ports from and below node ports, so that a server which is down for a while finds
 * its port still free when it comes back.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = 12_000 + Math.floor(Math.random() * 17_000)
    if (handedOut.has(port)) continue
    if ((await bindable(port, '127.0.0.1')) && (await bindable(port, '::1'))) {
      handedOut.add(port)
      return port
    }
  }
  throw new Error('no free port on 127.0.0.1 in a hundred attempts')
}

async function bindable(port: number, address: string): Promise<boolean> {
  const server = createServer()
  server.listen(port, address)
  try {
    await once(server, 'listening')
  } catch (cause) {
    // A host without IPv6 has nothing there that could be taken.
    return (cause as NodeJS.ErrnoException).code !== 'EADDRINUSE' && address === '::1'
  }
  server.close()
  await once(server, 'close')
  return true
}
