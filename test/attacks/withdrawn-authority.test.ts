/**
 * A connection that is accepted before the authorities for clients change, and begins its handshake
 * after that, is judged by the authorities before. So a certificate that they vouched for made its
 * holder the node for as long as the connection was open.
 */
import { once } from 'node:events'
import { connect } from 'node:tls'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { listenSecurely } from '../../src/server/listener.ts'
import { get, said, unbounded } from '../kit/listener.ts'
import { dial } from '../kit/wire/wire.ts'

void t.test(
  'a certificate of a withdrawn authority opens no connection that was waiting',
  async (t) => {
    const hubs = new CertificateAuthority('hub')
    const [before, after] = [new CertificateAuthority('before'), new CertificateAuthority('after')]
    const own = hubs.issue({ commonName: 'hub', usage: 'server', ipAddresses: ['127.0.0.1'] })
    const seen: unknown[] = []
    const listener = await listenSecurely({
      at: [{ host: '127.0.0.1', port: 0 }],
      maxConnections: 100,
      memory: unbounded(),
      credentials: { ...own, clientCa: before.certificate },
      onBroken: () => undefined,
      handler: async ({ peer }) => {
        seen.push(peer.tls)
        return said('ok')
      },
    })
    t.teardown(() => listener.close(0))
    const { certificate: cert, key } = before.issue({
      commonName: 'system:node:edge-1',
      organizations: ['system:nodes'],
      usage: 'client',
    })
    const to = { port: listener.port, host: '127.0.0.1', ca: hubs.certificate }
    const waiting = await dial(t, listener.port)
    // Connections are accepted in the order in which they come.
    const later = connect({ ...to })
    t.teardown(() => later.destroy())
    await once(later, 'secureConnect')
    listener.replaceCredentials({ ...own, clientCa: after.certificate })
    waiting.socket.removeAllListeners('data')
    const socket = connect({ ...to, servername: '', cert, key, socket: waiting.socket })
    t.teardown(() => socket.destroy())
    const over = new Promise((resolve) => {
      for (const event of ['data', 'close', 'error']) socket.once(event, resolve)
    })
    socket.on('error', () => undefined)
    socket.write(get())
    await over
    t.strictSame(seen, [])
  },
)
