/**
 * A connection that is accepted before the authorities for clients change, and begins its handshake
 * afterwards, is verified by the former authorities. So a certificate of theirs made its holder the
 * node for as long as the connection was open.
 */
import { once } from 'node:events'
import { connect } from 'node:tls'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { listenSecurely } from '../../src/http/server/listener.ts'
import { get, wholeReply } from '../kit/listener.ts'
import { dial } from '../kit/wire/wire.ts'
import { startFlooded } from '../kit/flooding.ts'

void t.test(
  'a certificate of a withdrawn authority opens no connection that was waiting',
  async (t) => {
    const hubs = await CertificateAuthority.create('hub')
    const [before, after] = [
      await CertificateAuthority.create('before'),
      await CertificateAuthority.create('after'),
    ]
    const own = await hubs.issue({ commonName: 'hub', usage: 'server', ipAddresses: ['127.0.0.1'] })
    const seen: unknown[] = []
    const listener = await listenSecurely({
      at: [{ host: '127.0.0.1', port: 0 }],
      maxConnections: 100,
      credentials: { ...own, clientCa: before.certificate },
      onBroken: () => undefined,
      handler: async ({ peer }) => {
        seen.push(peer.tls)
        return wholeReply('ok')
      },
    })
    t.teardown(() => listener.close(0))
    const { certificate: cert, key } = await before.issue({
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

void t.test('TLS sessions are not resumed, so no proof carries over', async (t) => {
  const { listener, ca } = await startFlooded(t, async () => wholeReply('ok'))
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    let session: Buffer | undefined
    for (const what of ['the first', 'the next']) {
      const socket = connect({
        port: listener.port,
        host: '127.0.0.1',
        ca,
        minVersion: version,
        maxVersion: version,
        ...(session && { session }),
      })
      t.teardown(() => socket.destroy())
      socket.on('session', (given) => (session = given))
      await once(socket, 'secureConnect')
      t.equal(socket.isSessionReused(), false, `${what} connection over ${version}`)
      const own = socket.getSession()
      socket.end('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
      let answer = ''
      for await (const chunk of socket) answer += String(chunk)
      t.match(answer, 'HTTP/1.1 200', `${what} connection over ${version}`)
      session ??= own
    }
  }
})
