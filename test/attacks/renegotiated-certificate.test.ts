/**
 * Up to TLS 1.2 a client can renegotiate, and show another certificate than before. Node keeps the
 * verdict on the first one: with any certificate of the client CA, and then one of its own making,
 * a program was the node.
 */
import { once } from 'node:events'
import { connect } from 'node:tls'
import t from 'tap'
import { keepProcessAlive } from '../../src/base/clock.ts'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { listenSecurely } from '../../src/http/server/listener.ts'
import { get, wholeReply } from '../kit/listener.ts'

void t.test('no client changes its certificate on a connection', async (t) => {
  const hubs = await CertificateAuthority.create('hub')
  const clients = await CertificateAuthority.create('clients')
  const own = await hubs.issue({ commonName: 'hub', usage: 'server', ipAddresses: ['127.0.0.1'] })
  const credentials = { ...own, clientCa: clients.certificate }
  const { certificate: cert, key } = await clients.issue({
    commonName: 'developer',
    usage: 'client',
  })
  const seen: unknown[] = []
  const listener = await listenSecurely({
    at: [{ host: '127.0.0.1', port: 0 }],
    maxConnections: 100,
    credentials,
    onBroken: () => undefined,
    handler: async ({ peer }) => {
      seen.push(peer.tls)
      return wholeReply('ok')
    },
  })
  t.teardown(async () => {
    // A connection that is over for its client alone keeps no process running until it is cut.
    using _staying = keepProcessAlive()
    await listener.close(0)
  })
  for (const when of ['at first', 'with credentials that were replaced']) {
    const socket = connect({
      port: listener.port,
      host: '127.0.0.1',
      ca: hubs.certificate,
      maxVersion: 'TLSv1.2',
      cert,
      key,
    })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    // The refusal is an alert, a reset, or an end: whichever the client reads first.
    const outcome = await new Promise<string>((resolve) => {
      socket.on('error', () => resolve('refused'))
      socket.once('close', () => resolve('refused'))
      socket.once('data', () => resolve('answered'))
      socket.renegotiate({}, () => socket.write(get()))
    })
    t.equal(outcome, 'refused', when)
    listener.replaceCredentials(credentials)
  }
  t.strictSame(seen, [])
})
