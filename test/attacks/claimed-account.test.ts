/**
 * An API server may have several authenticators, one of which (a webhook, a foreign issuer) accepts
 * tokens with any content. Such a token is accepted, and names the service account of another pod:
 * its holder must not get what was recorded for that account.
 */
import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Attributes } from '../../src/sandbox/authentication.ts'
import { configMaps, secrets, serviceAccounts, startCloud } from '../kit/cloud.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import { startOnlineHub, goOffline } from '../kit/hub.ts'

const namespace = 'default'
const secret = '/api/v1/namespaces/default/secrets/of-the-victim'
const configMap = '/api/v1/namespaces/default/configmaps/of-the-attacker'
const services = '/api/v1/services'

const victim = 'system:serviceaccount:default:victim'
const attacker = 'webhook:attacker'

/** What each of the two may read; besides, what `also` allows accounts. */
const mayRead =
  (also: (asked: Attributes) => boolean) =>
  (asked: Attributes): boolean => {
    const { user, resource } = asked
    if (user.name === victim && (resource === 'secrets' || resource === 'services')) return true
    if (user.name === attacker && resource === 'configmaps') return true
    return user.name === 'kubelet' || also(asked)
  }

const publishedKeys = ({ path }: Attributes): boolean => /openid/.test(path)

const encoded = (value: JsonObject): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url')

async function start(t: Test, also: (asked: Attributes) => boolean) {
  const authorizer = mayRead(also)
  const cloud = await startCloud(t, {
    tls: true,
    authorizer: (asked) => asked.user.name.startsWith('system:node:') || authorizer(asked),
  })
  const { sandbox } = cloud
  sandbox.create(secrets, { metadata: { name: 'of-the-victim', namespace }, data: {} })
  sandbox.create(configMaps, { metadata: { name: 'of-the-attacker', namespace } })
  const account = sandbox.create(serviceAccounts, { metadata: { name: 'victim', namespace } })
  const hub = await startOnlineHub(t, { upstreams: [cloud] })
  const issue = async (): Promise<string> => {
    const answer = await cloud
      .as('kubelet')
      .send('/api/v1/namespaces/default/serviceaccounts/victim/token', {
        method: 'POST',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      })
    return at(objectOf(answer), 'status', 'token') as string
  }
  const own = { namespace, serviceaccount: { name: 'victim', uid: account.metadata.uid ?? '' } }
  const claiming = [
    encoded({ alg: 'RS256', kid: 'of-another-issuer' }),
    encoded({ iss: 'https://elsewhere', sub: victim, 'kubernetes.io': own }),
    'AAAA',
  ].join('.')
  sandbox.accept(claiming, { name: attacker, groups: ['system:authenticated'] })
  const withToken = (token: string): Client => hub.as('kubelet', { token })
  const status = async (token: string, path: string): Promise<number> =>
    (await withToken(token).get(path)).status
  const offline = async (): Promise<void> => {
    await goOffline(cloud, hub)
  }
  return { hub, cloud, issue, claiming, status, offline }
}

for (const where of ['that API servers publish', 'that API servers withhold']) {
  void t.test(
    `a token that names another's account opens nothing of it, by keys ${where}`,
    async (t) => {
      const also = (asked: Attributes): boolean =>
        where === 'that API servers publish' && publishedKeys(asked)
      const { hub, issue, claiming, status, offline } = await start(t, also)
      const token = await issue()
      t.equal(await status(token, secret), 200)
      t.equal(await status(claiming, secret), 403)
      t.equal(await status(claiming, configMap), 200)
      t.equal(await status(token, configMap), 403)
      await offline()
      for (const restarted of [false, true]) {
        if (restarted) {
          await hub.restart()
          await hub.offline()
        }
        t.equal(await status(claiming, secret), 503, 'what only the victim read')
        t.equal(await status(token, configMap), 503, 'nor the other way round')
        t.equal(await status(token, secret), 200, 'each has its own')
        t.equal(await status(claiming, configMap), 200)
      }
    },
  )
}

void t.test('a token that names another’s account shares nothing that it may share', async (t) => {
  const { hub, issue, claiming, offline } = await start(t, publishedKeys)
  const token = await issue()
  const { resourceVersion } = await hub
    .as('kube-proxy', { token })
    .list(`${services}?resourceVersion=0`)
  await hub.as('kube-proxy', { token }).watch(services, { resourceVersion })
  const asProgram = (shown: string) =>
    hub.as('program', { token: shown }).get(`${services}?resourceVersion=0`)
  t.equal((await asProgram(token)).status, 200)
  t.equal((await asProgram(claiming)).status, 403)
  await offline()
  t.equal((await asProgram(token)).status, 200)
  t.equal((await asProgram(claiming)).status, 503)
})

void t.test('a watch of an account whose token has listed alone lists again', async (t) => {
  let isSaid = false
  const { hub, cloud, issue, offline } = await start(t, (asked) => isSaid && publishedKeys(asked))
  const [token, next] = [await issue(), await issue()]
  const as = (shown: string) => hub.as('kubelet', { token: shown })
  const list = '/api/v1/namespaces/default/secrets'
  const { resourceVersion } = await as(token).list(list)
  isSaid = true
  await hub.restart()
  await hub.online()
  t.equal((await as(next).get(configMap)).status, 403, 'an API server knows the other, too')
  const [error] = await (await as(token).watch(list, { resourceVersion })).rest()
  t.match(error, { type: 'ERROR', object: { code: 410 } })
  const again = await as(token).list(list)
  const watch = await as(token).watch(list, { resourceVersion: again.resourceVersion })
  cloud.sandbox.create(secrets, { metadata: { name: 'later', namespace } })
  await watch.next()
  await offline()
  const { names } = await as(next).list(list)
  t.strictSame(names.toSorted(), ['default/later', 'default/of-the-victim'])
})

void t.test('a token’s records stay its own where no watch resumes', async (t) => {
  let isSaid = false
  const { hub, issue, status, offline } = await start(t, (asked) => isSaid && publishedKeys(asked))
  const token = await issue()
  t.equal(await status(token, secret), 200)
  isSaid = true
  await hub.restart()
  await hub.online()
  t.equal(await status(token, configMap), 403)
  await offline()
  t.equal(await status(token, secret), 503, 'until the account reads it')
})

void t.test('the next token of an account has what the first one read', async (t) => {
  const { issue, status, offline } = await start(t, publishedKeys)
  const [token, next] = [await issue(), await issue()]
  t.equal(await status(token, secret), 200)
  t.equal(await status(next, configMap), 403, 'an API server knows it')
  await offline()
  t.equal(await status(next, secret), 200)
})
