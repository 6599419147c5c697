import { X509Certificate } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { servingCertificate } from '../../src/certificates/serving-certificate.ts'
import { StoredPair } from '../../src/certificates/stored-pair.ts'
import { rootFolder } from '../kit/root-folder.ts'

const authority = await CertificateAuthority.create('ca')

async function serving(
  t: Test,
  { names = ['127.0.0.1'], folder = rootFolder(t), by = authority } = {},
) {
  const failures: unknown[] = []
  const own = await servingCertificate({
    authority: by,
    names,
    stored: new StoredPair(folder, 'own'),
    onFailure: (cause) => failures.push(cause),
  })
  return { own, failures, folder }
}

void t.test('the certificate has the requested names and IPs', async (t) => {
  const { own } = await serving(t, { names: ['127.0.0.1', '::1', 'localhost', 'edge-1'] })
  const read = new X509Certificate(own.certificate)
  for (const address of ['127.0.0.1', '::1']) t.equal(read.checkIP(address), address)
  for (const name of ['localhost', 'edge-1']) t.equal(read.checkHost(name), name)
  t.equal(read.checkHost('elsewhere'), undefined)
  t.ok(read.verify(new X509Certificate(authority.certificate).publicKey))
})

void t.test('the certificate is valid whatever the clock says', async (t) => {
  const { own } = await serving(t)
  const { validFrom, validTo } = new X509Certificate(own.certificate)
  t.match([validFrom, validTo], [/ 1970 GMT$/, / 9999 GMT$/])
})

void t.test('the next start uses a stored certificate that fits', async (t) => {
  const { own, folder } = await serving(t)
  const { certificate } = own
  const shown = async (options: Parameters<typeof serving>[1]): Promise<string> =>
    (await serving(t, { folder, ...options })).own.certificate
  t.equal(await shown({}), certificate)
  const more = await shown({ names: ['127.0.0.1', 'edge-1'] })
  t.not(more, certificate, 'it is for other names')
  t.equal(await shown({ names: ['127.0.0.1', 'edge-1'] }), more)
  const fewer = await shown({})
  t.not(fewer, more, 'it is for more names than the hub has')
  const names = { commonName: 'nodehub', ipAddresses: ['127.0.0.1'] }
  const withEnd = await authority.issue({ ...names, usage: 'server' })
  await new StoredPair(folder, 'own').replace(withEnd)
  const next = await shown({})
  t.not(next, withEnd.certificate, 'it has an end')
  const elsewhere = await CertificateAuthority.create('ca')
  t.not(await shown({ by: elsewhere }), next, 'it is of another authority')
  const files = readdirSync(folder).filter((name) => /\d\.pem$/.test(name))
  t.equal(files.length, 1, 'former ones are removed')
  t.equal(statSync(join(folder, files[0] ?? '')).mode & 0o777, 0o600)
})

void t.test('a certificate that cannot be stored is used', async (t) => {
  const { own, failures } = await serving(t, { folder: '/proc/no-such-folder' })
  t.ok(own.certificate)
  t.match(failures, [{ code: 'ENOENT' }])
})
