import { KubeConfig } from '@kubernetes/client-node'
import { request } from 'undici'
import t from 'tap'
import { ApiAccess } from '../../../src/cluster/api/access.ts'
import { intermediateAuthority } from '../../kit/certificates.ts'
import { startCloud } from '../../kit/cloud.ts'

void t.test('an intermediate that is the whole CA of a kubeconfig is an anchor', async (t) => {
  const { url, sandbox } = await startCloud(t, {
    authority: await intermediateAuthority(),
    tls: true,
  })
  const caData = Buffer.from(sandbox.caCertificate ?? '').toString('base64')
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'here', server: url, caData, skipTLSVerify: false },
    { name: 'me', token: sandbox.token('me') },
  )
  const access = new ApiAccess(config)
  t.teardown(() => access[Symbol.asyncDispose]())
  const { agent, headers } = await access.transport(false)
  const answer = await request(`${url}/api`, { dispatcher: agent, headers })
  await answer.body.dump()
  t.equal(answer.statusCode, 200)
})
