import t, { type Test } from 'tap'
import { Secret } from '../../../src/base/secret.ts'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { StatusError } from '../../../src/api/kube/status.ts'
import { OwnKubelet, type OwnKubeletParts } from '../../../src/hub/upstream/own-kubelet.ts'
import type { Client } from '../../kit/client.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { startKubeletApi, type KubeletApi } from '../../kit/kubelet-api.ts'

const logs = '/containerLogs/default/a/main'

/** A hub's view of a kubelet that lets everyone use it. */
async function start(
  t: Test,
  parts: Partial<OwnKubeletParts>,
): Promise<{ api: KubeletApi; kubelet: OwnKubelet }> {
  const cluster = await CertificateAuthority.create('cluster')
  const { certificate, key } = await cluster.issue({
    commonName: 'system:node:edge-1',
    organizations: ['system:nodes'],
    usage: 'client',
  })
  const allowed = { status: 201, body: Buffer.from('{"status":{"allowed":true}}') }
  const api = await startKubeletApi(t, {
    nodeName: 'edge-1',
    clientCa: cluster.certificate,
    reviews: () => ({ send: () => Promise.resolve(allowed) }) as unknown as Client,
    answer: (_request, response) => response.end('a line\n'),
  })
  const kubelet = new OwnKubelet({
    credentials: () => ({ files: [], certificate: { chain: certificate, key: new Secret(key) } }),
    addresses: () => [{ host: '127.0.0.1', port: api.port }],
    isRoots: async () => true,
    ...parts,
  })
  return { api, kubelet }
}

/** The code and message of what a request is refused with. */
const refusal = (kubelet: OwnKubelet): Promise<unknown> =>
  kubelet.get(exchangeOf('/'), logs).then(
    () => 'answered',
    (error: unknown) =>
      error instanceof StatusError ? [error.status.code, error.status.message] : error,
  )

void t.test('a process in the kubelet’s place that is not root is sent nothing', async (t) => {
  const { api, kubelet } = await start(t, { isRoots: async () => false })
  t.match(await refusal(kubelet), [503, /it is not root who serves there/])
  t.match(await kubelet.upgrade(exchangeOf('/', { upgrade: true }), logs).catch(String), /503|root/)
  t.strictSame(api.requests, [])
})

void t.test('the next address is tried where nothing listens at the first', async (t) => {
  let port = 0
  const { api, kubelet } = await start(t, {
    addresses: () => [
      { host: '127.0.0.1', port: 1 },
      { host: '127.0.0.1', port },
    ],
  })
  port = api.port
  t.equal((await kubelet.get(exchangeOf('/'), logs)).status, 200)
})

void t.test('without a certificate there is nothing to show', async (t) => {
  const { api, kubelet } = await start(t, { credentials: () => ({ files: [] }) })
  t.match(await refusal(kubelet), [503, /no certificate to show/])
  t.strictSame(api.requests, [])
})
