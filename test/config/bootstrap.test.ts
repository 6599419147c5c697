import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { certificatesIn, pinnedCertificates } from '../../src/config/bootstrap.ts'

void t.test('a CA with an unreadable key is ignored', async (t) => {
  const { certificate } = await CertificateAuthority.create('ca')
  t.equal(certificatesIn(certificate).length, 1)
  const der = Buffer.from(new X509Certificate(certificate).raw)
  // The curve prime256v1, and one that nobody knows.
  der.write('2a8648ce3d03017f', der.indexOf('2a8648ce3d030107', 'hex'), 'hex')
  const pem = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`
  t.ok(new X509Certificate(pem), 'the rest of it can be read')
  t.strictSame(certificatesIn(certificate + pem), [])
  t.strictSame(pinnedCertificates(pem, ['sha256:00']), [])
})
