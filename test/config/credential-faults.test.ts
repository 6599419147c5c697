import t from 'tap'
import { Secret } from '../../src/base/secret.ts'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { certificateFault, whyRefused } from '../../src/config/credential-faults.ts'
import type { Credentials } from '../../src/config/credentials.ts'

const day = 24 * 3_600_000
const { certificate, key } = await (
  await CertificateAuthority.create('kubernetes')
).issue({
  commonName: 'system:node:edge-1',
  organizations: ['system:nodes'],
  usage: 'client',
  lifetimeMs: day,
})
const file = '/var/lib/kubelet/pki/kubelet-client-current.pem'
const credentials: Credentials = {
  certificate: { chain: certificate, key: new Secret(key) },
  from: { certificate: file },
  files: [file],
}

void t.test(
  'a certificate is at fault before and after its time, by the clock of the node',
  async (t) => {
    t.equal(certificateFault(credentials, Date.now()), undefined)
    t.match(
      certificateFault(credentials, Date.now() + 2 * day),
      /^the hub's client certificate expired \S+Z \(file \S+current\.pem; node clock \S+Z\)$/,
    )
    // A node without a battery for its clock.
    t.match(
      certificateFault(credentials, 0),
      /^the hub's client certificate is not valid before \S+Z \(file \S+; node clock 1970-01-01T00:00:00Z\)$/,
    )
    t.equal(certificateFault({ files: [] }, 0), undefined)
  },
)

void t.test('refused credentials that are unexpired are described', async (t) => {
  const now = Date.now()
  t.match(
    whyRefused(credentials, now),
    'CN=system:node:edge-1, O=system:nodes, issued by CN=kubernetes',
  )
  const token = { token: new Secret('hidden'), from: { token: '/t' }, files: [] }
  t.match(whyRefused(token, now), "the hub's token (file /t) is not accepted")
  t.notMatch(whyRefused(token, now), 'hidden')
  t.equal(whyRefused({ files: [] }, now), 'the hub has no credentials')
})
