import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { ServingCertificate } from '../../src/certificates/serving-certificate.ts'

const day = 24 * 3_600_000
const authority = new CertificateAuthority('ca')

function serving(t: Teardown, names: readonly string[] = []) {
  const renewed: string[] = []
  const own = new ServingCertificate(authority, names, ({ certificate }) =>
    renewed.push(certificate),
  )
  t.teardown(() => own[Symbol.dispose]())
  return { own, renewed }
}

void t.test('it is for the names and addresses it was asked for', async (t) => {
  const { own } = serving(t, ['127.0.0.1', '::1', 'localhost', 'edge-1'])
  const read = new X509Certificate(own.pair.certificate)
  for (const address of ['127.0.0.1', '::1']) t.equal(read.checkIP(address), address)
  for (const name of ['localhost', 'edge-1']) t.equal(read.checkHost(name), name)
  t.equal(read.checkHost('elsewhere'), undefined)
  t.ok(read.verify(new X509Certificate(authority.certificate).publicKey))
})

void t.test('it is renewed long before it ends, and not before that', async (t) => {
  const { own, renewed } = serving(t)
  const start = Date.now()
  const { validTo } = new X509Certificate(own.pair.certificate)
  own.renewIfDue(start + 19 * day)
  t.equal(renewed.length, 0)
  own.renewIfDue(start + 21 * day)
  t.equal(renewed.length, 1)
  t.equal(own.pair.certificate, renewed[0])
  t.ok(Date.parse(validTo) > start + 25 * day, 'the old one is good for days then')
})

void t.test('a clock that is set makes it anew', async (t) => {
  const { own, renewed } = serving(t)
  own.renewIfDue(Date.now() - day)
  t.equal(renewed.length, 1, 'back')
  own.renewIfDue(Date.now() + 365 * day)
  t.equal(renewed.length, 2, 'ahead')
})
