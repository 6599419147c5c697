import { X509Certificate } from 'node:crypto'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'

void t.test('an authority vouches for what it issues, and for nothing else', async (t) => {
  const authority = new CertificateAuthority('an authority')
  const own = new X509Certificate(authority.certificate)
  t.equal(own.ca, true)
  t.equal(own.subject, 'CN=an authority')
  t.equal(own.checkIssued(own), true)
  t.equal(own.verify(own.publicKey), true)
  const issued = new X509Certificate(
    authority.issue({ commonName: 'someone', usage: 'client' }).certificate,
  )
  t.equal(issued.ca, false)
  t.equal(issued.checkIssued(own), true)
  t.equal(issued.verify(own.publicKey), true)
  const other = new X509Certificate(new CertificateAuthority('an authority').certificate)
  t.equal(issued.verify(other.publicKey), false)
})

void t.test('a certificate says whom and what it is for', async (t) => {
  const { certificate } = new CertificateAuthority('ca').issue({
    commonName: 'system:node:edge-1',
    organizations: ['system:nodes', 'Grüße'],
    usage: 'both',
    dnsNames: ['edge-1', 'kubernetes.default.svc'],
    ipAddresses: ['10.0.0.1', '::1', '2001:db8::5:1', '::ffff:1.2.3.4'],
  })
  const read = new X509Certificate(certificate)
  t.equal(read.subject, 'O=system:nodes\nO=Grüße\nCN=system:node:edge-1')
  t.equal(
    read.subjectAltName,
    'DNS:edge-1, DNS:kubernetes.default.svc, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:2001:DB8:0:0:0:0:5:1, IP Address:0:0:0:0:0:FFFF:102:304',
  )
  t.strictSame(read.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
})

void t.test('a certificate lasts as long as it is asked to, before and after 2050', async (t) => {
  const authority = new CertificateAuthority('ca')
  for (const lifetimeMs of [3_600_000, 40 * 365 * 24 * 3_600_000]) {
    const before = Date.now()
    const read = new X509Certificate(
      authority.issue({ commonName: 'a', usage: 'server', lifetimeMs }).certificate,
    )
    const until = Date.parse(read.validTo)
    t.ok(Math.abs(until - before - lifetimeMs) < 60_000, read.validTo)
    t.ok(Date.parse(read.validFrom) <= before)
  }
})

void t.test('serial numbers differ', async (t) => {
  const authority = new CertificateAuthority('ca')
  const serials = Array.from(
    { length: 50 },
    () =>
      new X509Certificate(authority.issue({ commonName: 'a', usage: 'client' }).certificate)
        .serialNumber,
  )
  t.equal(new Set(serials).size, serials.length)
})

void t.test('an authority that is there already goes on issuing', async (t) => {
  const first = new CertificateAuthority('ca')
  const again = new CertificateAuthority('ca', first)
  const issued = new X509Certificate(again.issue({ commonName: 'a', usage: 'client' }).certificate)
  t.equal(again.certificate, first.certificate)
  t.equal(issued.checkIssued(new X509Certificate(first.certificate)), true)
  t.equal(issued.verify(new X509Certificate(first.certificate).publicKey), true)
  t.throws(() => new CertificateAuthority('another', first), /another name/)
})

void t.test('both sides of a TLS connection accept what was issued', async (t) => {
  const authority = new CertificateAuthority('ca')
  const serving = authority.issue({ commonName: 's', usage: 'server', ipAddresses: ['127.0.0.1'] })
  const showing = authority.issue({ commonName: 'c', organizations: ['o'], usage: 'client' })
  const server = createServer({
    cert: serving.certificate,
    key: serving.key,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const arrived = once(server, 'secureConnection') as Promise<[TLSSocket]>
  const socket = connect({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    ca: authority.certificate,
    cert: showing.certificate,
    key: showing.key,
  })
  await once(socket, 'secureConnect')
  const [other] = await arrived
  t.strictSame({ ...other.getPeerCertificate().subject }, { O: 'o', CN: 'c' })
  socket.destroy()
  other.destroy()
})
