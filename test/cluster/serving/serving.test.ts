import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { keepProcessAlive } from '../../../src/base/clock.ts'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { servingOf, wrongWith } from '../../../src/cluster/serving/serving.ts'
import { startTestCluster } from '../../kit/cluster-api.ts'
import { until } from '../../kit/until.ts'

void t.test('changed files are served; while unusable, the last good ones', async (t) => {
  using _staying = keepProcessAlive()
  const { api } = await startTestCluster(t)
  const authority = await CertificateAuthority.create('own')
  const pair = () => authority.issue({ commonName: 'hub', usage: 'server' })
  const [first, second] = [await pair(), await pair()]
  const folder = t.testdir({
    'tls.crt': first.certificate,
    'tls.key': first.key,
    'ca.crt': authority.certificate,
  })
  const file = (name: string): string => join(folder, name)
  const changes = new EventTarget()
  const said = (name: string) => () => void changes.dispatchEvent(new Event(name))
  await using serving = await servingOf(
    { kind: 'files', certificate: file('tls.crt'), key: file('tls.key'), ca: file('ca.crt') },
    {
      api,
      service: { namespace: 'kube-system', name: 'nodehub-cluster' },
      onRenewed: () => undefined,
      onFailure: said('unusable'),
    },
  )
  t.same(serving.pair(), first)
  t.equal(serving.bundle(), authority.certificate)
  t.equal(wrongWith(serving.pair()), undefined)

  writeFileSync(file('tls.crt'), second.certificate)
  await once(changes, 'unusable')
  t.same(serving.pair(), first, 'its key is not there yet')

  writeFileSync(file('tls.key'), second.key)
  await until('the new pair', () => serving.pair().certificate === second.certificate)
  t.same(serving.pair(), second)
})
