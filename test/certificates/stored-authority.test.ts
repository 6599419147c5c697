import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { storedAuthority } from '../../src/certificates/stored-authority.ts'

async function kept(folder: string): Promise<{ certificate: string; made: boolean }> {
  let made = false
  const { certificate } = await storedAuthority(folder, () => (made = true))
  return { certificate, made }
}

void t.test('a CA is created once, and kept', async (t) => {
  const folder = join(t.testdir(), 'pki')
  const first = await kept(folder)
  t.equal(first.made, true)
  t.strictSame(await kept(folder), { certificate: first.certificate, made: false })
  t.equal(readFileSync(join(folder, 'ca.crt'), 'utf8'), first.certificate)
})

void t.test('the key’s mode is 0600', async (t) => {
  const folder = join(t.testdir(), 'pki')
  await kept(folder)
  t.equal(statSync(join(folder, 'ca.key')).mode & 0o777, 0o600)
  t.equal(statSync(folder).mode & 0o777, 0o700)
})

void t.test('the CA certificate is valid from 1970 to 9999', async (t) => {
  const { certificate } = await kept(t.testdir())
  const { validFrom, validTo } = new X509Certificate(certificate)
  t.equal(Date.parse(validFrom), 0)
  t.match(validTo, /9999/)
})

void t.test('files that hold no CA are replaced', async (t) => {
  for (const broken of ['ca.crt', 'ca.key']) {
    const folder = t.testdir()
    await kept(folder)
    writeFileSync(join(folder, broken), 'no PEM')
    t.equal((await kept(folder)).made, true, broken)
    t.equal((await kept(folder)).made, false, broken)
  }
  const folder = t.testdir()
  const { certificate } = await kept(folder)
  await kept(join(folder, 'other'))
  writeFileSync(join(folder, 'other', 'ca.crt'), certificate)
  t.equal(
    (await kept(join(folder, 'other'))).made,
    true,
    'a certificate and the key of another one',
  )
})
