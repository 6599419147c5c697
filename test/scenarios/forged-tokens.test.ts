import t, { type Test } from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { configMaps, startCloud } from '../kit/cloud.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import { startOnlineHub, goOffline } from '../kit/hub.ts'

const configMap = '/api/v1/namespaces/default/configmaps/of-the-reader'

/**
 * A cloud that takes who proves nothing for system:anonymous, as API servers do, and what a service
 * account has read through a hub.
 */
async function start(t: Test) {
  const namespace = 'default'
  const cloud = await startCloud(t, {
    tls: true,
    anonymous: true,
    authorizer: ({ user }) => user.name !== 'system:anonymous',
  })
  cloud.sandbox.create(configMaps, { metadata: { name: 'of-the-reader', namespace } })
  cloud.sandbox.create(
    { group: '', version: 'v1', resource: 'serviceaccounts' },
    { metadata: { name: 'reader', namespace } },
  )
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  const issued = await cloud
    .as('kubelet')
    .send('/api/v1/namespaces/default/serviceaccounts/reader/token', {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    })
  const token = at(objectOf(issued), 'status', 'token') as string
  const withToken = (shown: string): Client => hub.as('kubelet', { token: shown })
  t.equal((await withToken(token).get(configMap)).status, 200)
  return { cloud, hub, token, withToken }
}

/** The claims of a token under another head, and a signature that is none. */
function forged(token: string, head: Readonly<Record<string, Json>>): string {
  const [, claims = ''] = token.split('.')
  return [Buffer.from(JSON.stringify(head)).toString('base64url'), claims, 'AAAA'].join('.')
}

const heads = [
  { alg: 'none' },
  { alg: 'HS256', kid: 'nobody-knows' },
  { alg: 'RS256', kid: '../../proofs.json' },
]

void t.test('a forged token is not proved by naming Authorization in Connection', async (t) => {
  const { cloud, hub, token, withToken } = await start(t)
  const ways: Record<string, string>[] = [
    { Connection: 'Authorization' },
    { Connection: 'close, AUTHORIZATION ' },
  ]
  for (const head of heads)
    for (const headers of ways)
      t.equal(
        (await withToken(forged(token, head)).send(configMap, { headers })).status,
        401,
        `${head.alg}, ${JSON.stringify(headers)}`,
      )
  await goOffline(cloud, hub)
  for (const head of heads)
    t.equal((await withToken(forged(token, head)).get(configMap)).status, 401, head.alg)
  t.equal((await withToken(token).get(configMap)).status, 200, 'whose it is still has it')
})

void t.test('a forged token reads nothing shared with its account', async (t) => {
  const { cloud, hub, token, withToken } = await start(t)
  const services = '/api/v1/services'
  const { resourceVersion } = await withToken(token).list(`${services}?resourceVersion=0`)
  await hub.as('kube-proxy').watch(services, { resourceVersion })
  // Nothing is recorded for this program.
  const asProgram = (shown: string): Client => hub.as('program', { token: shown })
  await asProgram(token).watch(services, { resourceVersion })
  const statuses = async (shown: string): Promise<number[]> =>
    Promise.all(
      [`${services}?resourceVersion=0`, `${services}?watch=1&timeoutSeconds=1`].map(
        async (path) => (await asProgram(shown).get(path)).status,
      ),
    )
  for (const head of heads) t.strictSame(await statuses(forged(token, head)), [401, 401])
  await goOffline(cloud, hub)
  t.strictSame(await statuses(token), [200, 200])
  for (const head of heads) t.strictSame(await statuses(forged(token, head)), [401, 401])
})
