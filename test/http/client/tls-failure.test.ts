import t from 'tap'
import { Secret } from '../../../src/base/secret.ts'
import {
  CertificateAuthority,
  type IssuedCertificate,
} from '../../../src/certificates/authority.ts'
import { Connections } from '../../../src/http/client/connections.ts'
import type { Credentials } from '../../../src/config/credentials.ts'
import { answerOf, rawUpstream } from '../../kit/wire/upstream.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

const cluster = await CertificateAuthority.create('kubernetes')
const elsewhere = await CertificateAuthority.create('elsewhere')
const serving = {
  commonName: 'kube-apiserver',
  usage: 'server',
  ipAddresses: ['127.0.0.1'],
} as const
const trusting: Credentials = {
  ca: cluster.certificate,
  from: { ca: '/etc/kubernetes/pki/ca.crt' },
  files: [],
}

const shows = ({ certificate, key }: IssuedCertificate): { cert: string; key: string } => ({
  cert: certificate,
  key,
})

/** What a probe of `origin` fails with. */
async function failure(t: Teardown, origin: string, credentials: Credentials): Promise<Error> {
  const connections = new Connections(credentials)
  t.teardown(() => connections[Symbol.asyncDispose]())
  return connections.probe(origin, ['/readyz'], 5_000).then(
    () => new Error('it was answered'),
    (error: Error) => error,
  )
}

/** No word of OpenSSL's source, and no advice for another program. */
const raw = /openssl|\.c:\d|--use-system-ca|Node\.js/i

void t.test('an expired certificate of a server: what, and the clock here', async (t) => {
  const expired = await cluster.issue({ ...serving, lifetimeMs: -60_000 })
  const { origin } = await rawUpstream(t, shows(expired))
  const { message, code } = (await failure(t, origin, trusting)) as NodeJS.ErrnoException
  t.match(
    message,
    /127\.0\.0\.1:\d+: its certificate, or that of its issuer, has expired, and this node's clock says \d{4}-\S+Z/,
  )
  t.equal(code, 'CERT_HAS_EXPIRED')
})

void t.test(
  'a certificate that the CA has not signed: which CA, and no other advice',
  async (t) => {
    const { origin } = await rawUpstream(t, shows(await elsewhere.issue(serving)))
    const { message } = await failure(t, origin, trusting)
    t.match(
      message,
      "its certificate is not signed by the CA in /etc/kubernetes/pki/ca.crt: that is another cluster's, or an old one, or the server does not send the certificates between the two",
    )
    t.notMatch(message, raw)
    const without = await failure(t, origin, { files: [] })
    t.match(without.message, "is signed by none of the system's CAs: give the cluster's CA")
    t.notMatch(without.message, raw)
  },
)

void t.test('a certificate for another address', async (t) => {
  const other = await cluster.issue({ ...serving, ipAddresses: ['192.0.2.1'] })
  const { origin } = await rawUpstream(t, shows(other))
  const { message } = await failure(t, origin, trusting)
  t.match(message, /is not for this address: .*192\.0\.2\.1/)
})

void t.test('a server of plain HTTP is called so', async (t) => {
  const upstream = await rawUpstream(t)
  void upstream.next().then((wire) => wire.write(answerOf('', 'HTTP/1.1 400 Bad Request')))
  const origin = upstream.origin.replace('http:', 'https:')
  const { message } = await failure(t, origin, trusting)
  t.equal(
    message,
    `${origin} does not speak TLS: is it a port of plain HTTP, or of something else?`,
  )
})

/** A record of TLS: a fatal alert, that a certificate has expired (RFC 8446 section 6). */
const expiredAlert = Buffer.from([21, 3, 3, 0, 2, 2, 45])

void t.test('a server that refuses the client certificate in the handshake', async (t) => {
  const upstream = await rawUpstream(t)
  void upstream.next().then((wire) => wire.socket.write(expiredAlert))
  const { certificate, key } = await cluster.issue({ commonName: 'node', usage: 'client' })
  const file = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  const { message } = await failure(t, upstream.origin.replace('http:', 'https:'), {
    ...trusting,
    certificate: { chain: certificate, key: new Secret(key) },
    from: { ...trusting.from, certificate: file },
  })
  t.match(message, /refuses the TLS connection: .*alert certificate expired; it was shown /)
  t.match(message, file)
  t.notMatch(message, raw)
})
