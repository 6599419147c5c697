/**
 * A TLS listener on its own, for tests of what a process takes: `mostUnproven` as its argument, its
 * port and authority as a line of JSON. It ends with its standard input.
 */
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { listenSecurely } from '../../src/http/server/listener.ts'
import { wholeReply } from './listener.ts'

const hubs = await CertificateAuthority.create('hub')

const { port } = await listenSecurely({
  at: [{ host: '127.0.0.1', port: 0 }],
  maxConnections: 1_000,
  mostUnproven: Number(process.argv[2]),
  credentials: await hubs.issue({ commonName: 'hub', usage: 'server', ipAddresses: ['127.0.0.1'] }),
  onBroken: () => undefined,
  handler: async ({ url }) => (url === '/livez' ? wholeReply('ok') : new Promise(() => undefined)),
})
process.stdin.resume().once('end', () => process.exit())
process.stdout.write(`${JSON.stringify({ port, ca: hubs.certificate })}\n`)
