import { spawnSync } from 'node:child_process'
import {
  cpSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CertificateAuthority, type IssuedCertificate } from '../../src/certificates/authority.ts'
import { StoredPair } from '../../src/certificates/stored-pair.ts'
import { loadCredentials } from '../../src/http/client/credential-follower.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'

const authority = await CertificateAuthority.create('ca')
const made = (): Promise<IssuedCertificate> => authority.issue({ commonName: 'a', usage: 'client' })

void t.test('a stored pair is read back, also as credentials', async (t) => {
  const stored = new StoredPair(t.testdir(), 'own')
  t.equal(stored.read(), undefined)
  const pair = await made()
  await stored.replace(pair)
  t.strictSame(stored.read(), pair)
  t.equal(lstatSync(stored.file).mode & 0o777, 0o777, 'a link')
  const where = { kind: 'files', certificate: stored.file, key: stored.file } as const
  t.ok(loadCredentials(where).certificate, 'one file has both, behind a link')
})

void t.test(
  'a process that is killed at any step leaves the former pair or the new one',
  async (t) => {
    const [former, next] = [await made(), await made()]
    const folder = t.testdir({ pair: JSON.stringify(next), start: {} })
    const start = join(folder, 'start')
    await new StoredPair(start, 'own').replace(former)
    const own = readdirSync(start).find((name) => /\d\.pem$/.test(name)) ?? ''
    // Another second than that of the next one, whatever the clock says.
    cpSync(join(start, own), join(start, 'own-2020-01-01-00-00-00.pem'))
    rmSync(join(start, own))
    rmSync(join(start, 'own-current.pem'))
    symlinkSync('own-2020-01-01-00-00-00.pem', join(start, 'own-current.pem'))
    writeFileSync(join(start, 'own-2020-01-01-00-00-01.pem.new'), 'a write that was killed')
    const seen = new Set<string>()
    for (let steps = 0; ; steps++) {
      const at = join(folder, String(steps))
      cpSync(start, at, { recursive: true, verbatimSymlinks: true })
      const main = join(import.meta.dirname, 'replace-main.ts')
      const { status } = spawnSync(...plainNode(main, at, join(folder, 'pair'), String(steps)))
      const found = new StoredPair(at, 'own').read()
      t.ok([former.key, next.key].includes(found?.key ?? ''), `after ${steps} steps`)
      seen.add(found?.key ?? '')
      const again = await made()
      await new StoredPair(at, 'own').replace(again)
      t.strictSame(new StoredPair(at, 'own').read(), again, 'and the next one replaces it')
      t.equal(readdirSync(at).length, 2, 'nothing else is left then')
      if (status === 0) break
    }
    t.equal(seen.size, 2)
  },
)

void t.test('links elsewhere and damaged pairs are not read', async (t) => {
  const folder = t.testdir({ elsewhere: {}, own: {} })
  const elsewhere = new StoredPair(join(folder, 'elsewhere'), 'own')
  await elsewhere.replace(await made())
  const stored = new StoredPair(join(folder, 'own'), 'own')
  const target = readlinkSync(elsewhere.file)
  symlinkSync(`../elsewhere/${target}`, stored.file)
  t.equal(stored.read(), undefined, 'a link out of the folder')
  rmSync(stored.file)
  const [one, other] = [await made(), await made()]
  const unreadable = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  const damaged = one.certificate + unreadable + one.key
  for (const text of ['', 'no PEM', one.certificate, one.certificate + other.key, damaged]) {
    writeFileSync(join(folder, 'own', target), text)
    rmSync(stored.file, { force: true })
    symlinkSync(target, stored.file)
    t.equal(stored.read(), undefined)
  }
})
