import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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

void t.test('the Lease is renewed while as many workers as there may be wait', async (t) => {
  const server = createServer(({ url }, answer) => {
    if (url === '/lease') answer.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    { name: 'here', server: url, skipTLSVerify: false },
    { name: 'me', token: 'x' },
  )
  const access = new ApiAccess(config)
  const { agent } = await access.transport(false)
  const workers = Array.from({ length: 256 }, () => request(url, { dispatcher: agent }))
  const ended = Promise.allSettled(workers)
  const { statusCode } = await request(`${url}/lease`, { dispatcher: agent })
  t.equal(statusCode, 200)
  await access[Symbol.asyncDispose]()
  await ended
})
