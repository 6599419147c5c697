/**
 * A hub that listens beyond loopback: a client there is the node only with a certificate, and gets
 * nothing that is for root of this host, even if root of this host connects.
 */
import { request } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { nodeName, startCloud } from '../kit/cloud.ts'
import { startOnlineHub, startTestHub } from '../kit/hub.ts'

const own = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')
const skip = own ? false : 'this host has no address but those of loopback'

interface Asked {
  readonly port: number
  readonly path: string
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string }
}

/** The answer to a request to this host's own address, which never leaves it. */
async function ask({ port, path, tls }: Asked): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
  const to = { host: own?.address, port, path, agent: false }
  const asking = tls
    ? requestSecurely({ ...to, ...tls, checkServerIdentity: () => undefined })
    : request(to)
  asking.on('error', reject).on('response', (answer) => {
    text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject)
  })
  asking.end()
  return promise
}

/** Requests other than the hub's own. */
const path = '/api/v1/namespaces/default/secrets/of-the-node'
const everywhere = ['--bind-proxy-address=0.0.0.0', '--bind-address=0.0.0.0']

for (const rule of ['root', 'node', 'none'] as const) {
  void t.test(
    `with --anonymous-loopback=${rule} a client beyond loopback is the node only with its certificate`,
    { skip },
    async (t) => {
      const cloud = await startCloud(t, { tls: true })
      const hub = await startOnlineHub(t, {
        upstreams: [cloud],
        flags: [...everywhere, `--anonymous-loopback=${rule}`],
      })
      const { proxyPort, proxySecurePort, opsPort } = hub.hub
      const heard = (): number =>
        cloud.sandbox.requests.filter(({ url }) => url.includes(path)).length
      const plain = await ask({ port: proxyPort, path })
      t.equal(plain.status, 401, 'on the plain proxy')
      t.equal((await ask({ port: proxySecurePort, path, tls: { ca: hub.ca } })).status, 401)
      t.equal(heard(), 0, 'no API server has heard of it')
      const { certificate: cert, key } = await cloud.sandbox.clientCertificate(
        `system:node:${nodeName}`,
        ['system:nodes'],
      )
      const shown = await ask({
        port: proxySecurePort,
        path,
        tls: { ca: hub.ca, cert, key },
      })
      t.equal(shown.status, 404, 'a certificate of the node is believed there, too')
      t.equal(heard(), 1)
      t.equal((await ask({ port: opsPort, path: '/livez' })).status, 200)
      t.match(await ask({ port: opsPort, path: '/inspect/boot' }), {
        status: 403,
        body: 'on loopback only',
      })
    },
  )
}

void t.test('by default nothing listens at another address', { skip }, async (t) => {
  const hub = await startTestHub(t, { upstreams: [await startCloud(t)] })
  const { proxyPort, proxySecurePort, opsPort } = hub.hub
  for (const port of [proxyPort, proxySecurePort, opsPort])
    await t.rejects(ask({ port, path: '/livez' }), { code: 'ECONNREFUSED' })
})
