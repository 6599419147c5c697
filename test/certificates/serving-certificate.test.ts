import { X509Certificate } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { ServingCertificate } from '../../src/certificates/serving-certificate.ts'
import { StoredPair } from '../../src/certificates/stored-pair.ts'
import { rootFolder } from '../kit/root-folder.ts'

const day = 24 * 3_600_000
const authority = await CertificateAuthority.create('ca')

async function serving(
  t: Test,
  { names = ['127.0.0.1'], folder = rootFolder(t), by = authority } = {},
) {
  const renewed: string[] = []
  const failures: unknown[] = []
  const own = await ServingCertificate.open({
    authority: by,
    names,
    stored: new StoredPair(folder, 'own'),
    onRenewed: ({ certificate }) => renewed.push(certificate),
    onFailure: (cause) => failures.push(cause),
  })
  t.teardown(() => own[Symbol.dispose]())
  return { own, renewed, failures, folder }
}

void t.test('the certificate has the requested names and IPs', async (t) => {
  const { own } = await serving(t, { names: ['127.0.0.1', '::1', 'localhost', 'edge-1'] })
  const read = new X509Certificate(own.pair.certificate)
  for (const address of ['127.0.0.1', '::1']) t.equal(read.checkIP(address), address)
  for (const name of ['localhost', 'edge-1']) t.equal(read.checkHost(name), name)
  t.equal(read.checkHost('elsewhere'), undefined)
  t.ok(read.verify(new X509Certificate(authority.certificate).publicKey))
})

void t.test('the certificate is renewed days before it expires', async (t) => {
  const { own, renewed } = await serving(t)
  const start = Date.now()
  const { validTo } = new X509Certificate(own.pair.certificate)
  await own.renewIfDue(start + 19 * day)
  t.equal(renewed.length, 0)
  await own.renewIfDue(start + 21 * day)
  t.equal(renewed.length, 1)
  t.equal(own.pair.certificate, renewed[0])
  t.ok(Date.parse(validTo) > start + 25 * day, 'the old one is good for days then')
})

void t.test('setting the clock renews it', async (t) => {
  const { own, renewed } = await serving(t)
  await own.renewIfDue(Date.now() - day)
  t.equal(renewed.length, 1, 'back')
  await own.renewIfDue(Date.now() + 365 * day)
  t.equal(renewed.length, 2, 'ahead')
})

void t.test('the next start uses a stored certificate that fits', async (t) => {
  const { own, folder } = await serving(t)
  const { certificate } = own.pair
  const shown = async (options: Parameters<typeof serving>[1]): Promise<string> =>
    (await serving(t, { folder, ...options })).own.pair.certificate
  t.equal(await shown({}), certificate)
  const more = await shown({ names: ['127.0.0.1', 'edge-1'] })
  t.not(more, certificate, 'it is for other names')
  t.equal(await shown({ names: ['127.0.0.1', 'edge-1'] }), more)
  const fewer = await shown({})
  t.not(fewer, more, 'it is for more names than the hub has')
  const later = Date.now() + 25 * day
  const clock = t.capture(Date, 'now', () => later)
  const next = await shown({})
  t.not(next, fewer, 'it is due for rotation')
  t.equal(await shown({}), next)
  clock.restore()
  const elsewhere = await CertificateAuthority.create('ca')
  t.not(await shown({ by: elsewhere }), next, 'it is of another authority')
  const files = readdirSync(folder).filter((name) => /\d\.pem$/.test(name))
  t.equal(files.length, 1, 'former ones are removed')
  t.equal(statSync(join(folder, files[0] ?? '')).mode & 0o777, 0o600)
})

void t.test('a certificate that cannot be stored is used', async (t) => {
  const { own, failures } = await serving(t, { folder: '/proc/no-such-folder' })
  t.ok(own.pair.certificate)
  t.match(failures, [{ code: 'ENOENT' }])
})
