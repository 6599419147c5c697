import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ClientCertificate } from '../../../src/http/exchange/exchange.ts'
import { AcceptedCertificates } from '../../../src/hub/identity/accepted-certificates.ts'

const hour = 3_600_000

const certificate = (fingerprint: string, validTo = 10 * hour): ClientCertificate => ({
  commonName: 'system:node:edge-1',
  organizations: ['system:nodes'],
  validFrom: hour,
  validTo,
  fingerprint,
})

interface Kept {
  readonly file: string
  readonly failures: unknown[]
  /** Resolves at the first of them. */
  readonly failed: Promise<void>
  /** A hub with this file, whose time of day is `at`. */
  readonly at: (at: number) => AcceptedCertificates
  readonly setTime: (to: number) => void
}

function kept(t: Test): Kept {
  const file = join(t.testdir(), 'accepted-certificates.json')
  const failures: unknown[] = []
  const failed = Promise.withResolvers<void>()
  let time = 0
  t.capture(Date, 'now', () => time)
  return {
    file,
    failures,
    failed: failed.promise,
    setTime: (to) => {
      time = to
    },
    at: (at) => {
      time = at
      return new AcceptedCertificates(file, (cause) => {
        failures.push(cause)
        failed.resolve()
      })
    },
  }
}

void t.test('an accepted certificate is known after a restart, and no other', async (t) => {
  const { at } = kept(t)
  const before = at(2 * hour)
  before.add(certificate('AA'))
  await before[Symbol.asyncDispose]()
  const later = at(20 * hour)
  t.ok(later.wasGood(certificate('AA')))
  t.notOk(later.wasGood(certificate('BB')), 'it was never accepted')
})

void t.test('a certificate that ended before the latest acceptance is not good', async (t) => {
  const { at } = kept(t)
  const accepted = at(2 * hour)
  accepted.add(certificate('AA', 3 * hour))
  at(4 * hour)
  accepted.add(certificate('BB'))
  t.notOk(accepted.wasGood(certificate('AA', 3 * hour)))
  t.ok(accepted.wasGood(certificate('BB')))
  await accepted[Symbol.asyncDispose]()
})

void t.test('a clock that was once far ahead has no effect later', async (t) => {
  const { at } = kept(t)
  const accepted = at(90 * hour)
  accepted.add(certificate('AA', 100 * hour))
  at(2 * hour)
  accepted.add(certificate('BB'))
  t.ok(accepted.wasGood(certificate('BB')))
  await accepted[Symbol.asyncDispose]()
})

void t.test('the last four certificates are kept', async (t) => {
  const { file, at } = kept(t)
  const accepted = at(2 * hour)
  for (const each of ['AA', 'BB', 'CC', 'DD', 'AA', 'EE']) accepted.add(certificate(each))
  await accepted[Symbol.asyncDispose]()
  const all = JSON.parse(readFileSync(file, 'utf8')) as [string, number][]
  t.strictSame(
    all.map(([fingerprint]) => fingerprint),
    ['CC', 'DD', 'AA', 'EE'],
  )
})

void t.test('a malformed file has no certificates', async (t) => {
  const { file, at } = kept(t)
  for (const text of ['', '{', '{}', '[["AA"],[1,2],["BB","3"],null]']) {
    writeFileSync(file, text)
    t.notOk(at(2 * hour).wasGood(certificate('AA')), text)
  }
})

void t.test('a failed write is reported once, and retried', async (t) => {
  const { file, failures, failed, at, setTime } = kept(t)
  mkdirSync(file)
  const accepted = at(2 * hour)
  const add = (): void => accepted.add(certificate('AA'))
  add()
  await failed
  for (let request = 0; request < 100; request++) add()
  rmSync(file, { recursive: true })
  setTime(3 * hour)
  add()
  await accepted[Symbol.asyncDispose]()
  t.equal(failures.length, 1)
  t.match(readFileSync(file, 'utf8'), /AA/)
})
