import t from 'tap'
import type { ClientCertificate } from '../../../src/http/exchange/exchange.ts'
import { namesNode, isValidNow } from '../../../src/hub/identity/certificate.ts'

const certificate: ClientCertificate = {
  commonName: 'system:node:edge-1',
  organizations: ['system:nodes'],
  validFrom: 1000,
  validTo: 2000,
  fingerprint: 'AB:CD',
}

void t.test(
  "a certificate is this node's by its name and its group, not by one of them",
  async (t) => {
    t.ok(namesNode(certificate, 'edge-1'))
    t.notOk(namesNode(certificate, 'edge-2'))
    t.notOk(namesNode({ ...certificate, commonName: 'edge-1' }, 'edge-1'))
    t.notOk(namesNode({ ...certificate, organizations: [] }, 'edge-1'))
    t.ok(namesNode({ ...certificate, organizations: ['a', 'system:nodes'] }, 'edge-1'))
  },
)

void t.test('a certificate holds from its first moment to its last', async (t) => {
  let now = 0
  t.capture(Date, 'now', () => now)
  for (const [at, holds] of [
    [999, false],
    [1000, true],
    [2000, true],
    [2001, false],
  ] as const) {
    now = at
    t.equal(isValidNow(certificate), holds, `${at}`)
  }
})
