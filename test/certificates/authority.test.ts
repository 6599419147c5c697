import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import {
  curve,
  pemOfKey,
  privateCryptoKey,
  publicCryptoKey,
  signature,
} from '../../src/certificates/keys.ts'
import { loadX509 } from '../../src/certificates/x509.ts'

void t.test('a CA verifies the certificates that it issued, and no others', async (t) => {
  const authority = await CertificateAuthority.create('an authority')
  const own = new X509Certificate(authority.certificate)
  t.equal(own.ca, true)
  t.equal(own.subject, 'CN=an authority')
  t.equal(own.checkIssued(own), true)
  t.equal(own.verify(own.publicKey), true)
  const issued = new X509Certificate(
    (await authority.issue({ commonName: 'someone', usage: 'client' })).certificate,
  )
  t.equal(issued.ca, false)
  t.equal(issued.checkIssued(own), true)
  t.equal(issued.verify(own.publicKey), true)
  const other = new X509Certificate((await CertificateAuthority.create('an authority')).certificate)
  t.equal(issued.verify(other.publicKey), false)
})

void t.test('a certificate has subject, SANs and usages', async (t) => {
  const { certificate } = await (
    await CertificateAuthority.create('ca')
  ).issue({
    commonName: 'system:node:edge-1',
    organizations: ['system:nodes', 'Grüße'],
    usage: 'server',
    dnsNames: ['edge-1', 'kubernetes.default.svc'],
    ipAddresses: ['10.0.0.1', '::1', '2001:db8::5:1', '::ffff:1.2.3.4'],
  })
  const read = new X509Certificate(certificate)
  t.equal(read.subject, 'O=system:nodes\nO=Grüße\nCN=system:node:edge-1')
  t.equal(
    read.subjectAltName,
    'DNS:edge-1, DNS:kubernetes.default.svc, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:2001:DB8:0:0:0:0:5:1, IP Address:0:0:0:0:0:FFFF:102:304',
  )
  t.strictSame(read.keyUsage, ['1.3.6.1.5.5.7.3.1'])
})

void t.test('a certificate has the requested lifetime, before and after 2050', async (t) => {
  const authority = await CertificateAuthority.create('ca')
  for (const lifetimeMs of [3_600_000, 40 * 365 * 24 * 3_600_000]) {
    const before = Date.now()
    const read = new X509Certificate(
      (await authority.issue({ commonName: 'a', usage: 'server', lifetimeMs })).certificate,
    )
    const until = Date.parse(read.validTo)
    t.ok(Math.abs(until - before - lifetimeMs) < 60_000, read.validTo)
    t.ok(Date.parse(read.validFrom) <= before)
  }
})

void t.test('serial numbers differ', async (t) => {
  const authority = await CertificateAuthority.create('ca')
  const serials = new Set<string>()
  for (let i = 0; i < 50; i++) {
    const { certificate } = await authority.issue({ commonName: 'a', usage: 'client' })
    serials.add(new X509Certificate(certificate).serialNumber)
  }
  t.equal(serials.size, 50)
})

void t.test('an existing CA goes on issuing', async (t) => {
  const first = await CertificateAuthority.create('ca')
  const again = new CertificateAuthority(first)
  const issued = new X509Certificate(
    (await again.issue({ commonName: 'a', usage: 'client' })).certificate,
  )
  t.equal(again.certificate, first.certificate)
  t.equal(issued.checkIssued(new X509Certificate(first.certificate)), true)
  t.equal(issued.verify(new X509Certificate(first.certificate).publicKey), true)
})

void t.test(
  'an issuer is named byte for byte as in its certificate, as Go compares them',
  async (t) => {
    const { Name, X509CertificateGenerator } = await loadX509()
    const name = Buffer.concat([Buffer.from([0x0c, 10]), Buffer.from('nodehub-ca')])
    const { privateKey, publicKey } = generateKeyPairSync('ec', curve)
    const own = await X509CertificateGenerator.createSelfSigned({
      // UTF8String, as authorities of earlier hubs have it, and not PrintableString.
      name: new Name(`CN=#${name.toString('hex')}`),
      keys: { privateKey: privateCryptoKey(privateKey), publicKey: publicCryptoKey(publicKey) },
      signingAlgorithm: signature,
    })
    const pair = { certificate: own.toString('pem'), key: pemOfKey(privateKey) }
    const { certificate } = await new CertificateAuthority(pair).issue({
      commonName: 'a',
      usage: 'server',
    })
    t.ok(new X509Certificate(certificate).raw.includes(name))
  },
)
