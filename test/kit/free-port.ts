import { once } from 'node:events'
import { createServer } from 'node:net'

const handedOut = new Set<number>()

/**
 * A port on loopback that nothing listens on. It lies below the range the kernel draws outgoing ports from and below node ports, so
 * that a server which is down for a while finds its port still free when it comes back.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = 12_000 + Math.floor(Math.random() * 17_000)
    if (!handedOut.has(port) && (await bindable(port))) {
      handedOut.add(port)
      return port
    }
  }
  throw new Error('no free port on 127.0.0.1 in a hundred attempts')
}

async function bindable(port: number): Promise<boolean> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
