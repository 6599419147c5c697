import t from 'tap'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { objectAt } from '../../src/api/kube/json-at.ts'
import { mostOfUser } from '../../src/hub/authorization/recorded-decisions.ts'
import type { Attributes } from '../../src/sandbox/authentication.ts'
import { objectOf, type Answer, type Client } from '../kit/client.ts'
import {
  allServices,
  configMaps,
  service,
  serviceAccounts,
  services,
  type CloudServer,
} from '../kit/cloud.ts'
import { dial } from '../kit/wire/wire.ts'
import { goOffline, startChildHub, startCloud, startTestHub } from '../kit/hub.ts'

const namespaced = '/api/v1/namespaces/default/configmaps'
const everywhere = '/api/v1/configmaps'
const one = `${namespaced}/one`

type Refuses = (attributes: Attributes) => boolean

/**
 * A cloud with two config maps, a hub that records all components unless `flags` say otherwise, and
 * a pod's client with the token of an account.
 */
async function withRobot(t: Parameters<typeof startCloud>[0], flags: readonly string[] = []) {
  const cloud = await startCloud(t)
  populate(cloud)
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: flags.length > 0 ? flags : ['--cache-components=*'],
  })
  await hub.online()
  const token = await cloud.accountToken('robot')
  const robot = (): Client => hub.as('robot', { token })
  /** Whether the API server denies the account, from now on, what `refuses` says. */
  const deny = (refuses: Refuses): void => cloud.sandbox.authorize((asked) => !refuses(asked))
  return { cloud, hub, robot, deny }
}

function populate({ sandbox }: CloudServer): void {
  sandbox.create(serviceAccounts, { metadata: { name: 'robot', namespace: 'default' } })
  for (const name of ['one', 'two']) {
    sandbox.create(configMaps, { metadata: { name, namespace: 'default' } })
  }
}

const isOf = ({ user, resource }: Attributes): boolean =>
  user.name.endsWith(':robot') && resource === 'configmaps'

const review = (client: Client, kind: string, spec: JsonObject): Promise<Answer> =>
  client.send(`/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`, {
    method: 'POST',
    body: { kind, apiVersion: 'authorization.k8s.io/v1', metadata: {}, spec },
  })

const decisions = (result: string): string =>
  `nodehub_offline_decisions_total{kind="request",result="${result}"}`

async function statuses(client: Client, ...paths: readonly string[]): Promise<number[]> {
  const answers: number[] = []
  for (const path of paths) {
    const answer = await client.open(path)
    answers.push(answer.statusCode ?? 0)
    answer.destroy()
  }
  return answers
}

void t.test('a permission withdrawn online is gone offline, and after a restart', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [200, 200])
  deny((asked) => isOf(asked) && asked.name === 'one')
  t.equal((await robot().get(one)).status, 403)
  await goOffline(cloud, hub)
  const refused = await robot().get(one)
  t.equal(refused.status, 403)
  t.match(objectOf(refused), {
    reason: 'Forbidden',
    message:
      /^configmaps "one" is forbidden: User "system:serviceaccount:default:robot" cannot get resource "configmaps" in API group "" in the namespace "default": an API server denied it at 20\S+Z, \d+ seconds ago, and none can be reached now$/,
  })
  t.equal((await robot().get(`${namespaced}/two`)).status, 200, 'what was not denied')
  t.equal(await hub.metric(decisions('denied')), 1)
  t.equal(await hub.metric(decisions('allowed')), 1)
  await hub.restart()
  await hub.offline()
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [403, 200])
})

void t.test('a denied list is not answered from its record, nor are its objects', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  t.strictSame(await statuses(robot(), everywhere, one), [200, 200])
  deny((asked) => isOf(asked) && asked.verb !== 'get')
  t.equal((await robot().get(everywhere)).status, 403)
  await goOffline(cloud, hub)
  const labelled = `${everywhere}?labelSelector=app%3Dweb`
  t.strictSame(await statuses(robot(), everywhere, labelled), [403, 403])
  t.equal((await robot().get(namespaced)).status, 503, 'only the wider list has it')
  t.equal((await robot().get(`${namespaced}/two`)).status, 503, 'only the list has it')
  t.equal((await robot().get(one)).status, 200, 'it was got by its name')
  t.equal(await hub.metric(decisions('unknown')), 2)
})

void t.test('an object is not answered from a denied list with a selector', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const labelled = `${namespaced}?labelSelector=app%21%3Dweb`
  const byField = `${everywhere}?fieldSelector=metadata.namespace%3Ddefault`
  t.strictSame(await statuses(robot(), labelled, byField, `${namespaced}/two`), [200, 200, 200])
  deny((asked) => isOf(asked) && asked.verb === 'list')
  t.strictSame(await statuses(robot(), labelled), [403])
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), labelled, byField, one), [403, 403, 503])
  t.equal((await robot().get(`${namespaced}/two`)).status, 200, 'it was got by its name')
})

void t.test('a denied watch does not begin from the record', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const { resourceVersion } = await robot().list(namespaced)
  const watch = `${namespaced}?watch=true&resourceVersion=${resourceVersion}`
  deny((asked) => isOf(asked) && asked.verb === 'watch')
  t.strictSame(await statuses(robot(), watch), [403])
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), watch, namespaced), [403, 200])
})

void t.test('a watch does not begin with what a denied list has', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const { resourceVersion } = await robot().list(namespaced)
  deny((asked) => isOf(asked) && asked.verb === 'list')
  t.strictSame(await statuses(robot(), namespaced), [403])
  await goOffline(cloud, hub)
  const watch = `${namespaced}?watch=true`
  const withState = [
    watch,
    `${watch}&resourceVersion=0`,
    `${watch}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan`,
  ]
  t.strictSame(await statuses(robot(), ...withState), [503, 503, 503])
  t.strictSame(await statuses(robot(), `${watch}&resourceVersion=${resourceVersion}`), [200])
})

void t.test('a watch over WebSocket is denied as any other', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const { resourceVersion } = await robot().list(namespaced)
  const watch = `${namespaced}?watch=true&resourceVersion=${resourceVersion}`
  deny((asked) => isOf(asked) && asked.verb === 'watch')
  const client = await dial(t, Number(new URL(hub.url).port))
  client.write(
    [
      `GET ${watch} HTTP/1.1`,
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      `Authorization: Bearer ${await cloud.accountToken('robot')}`,
      '',
      '',
    ].join('\r\n'),
  )
  t.match((await client.head()).line, / 403 /)
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), watch, namespaced), [403, 200])
})

void t.test('a permission given back is there offline, and after a restart', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  t.strictSame(await statuses(robot(), namespaced, one), [200, 200])
  deny(isOf)
  t.strictSame(await statuses(robot(), namespaced, one), [403, 403])
  deny(() => false)
  t.strictSame(await statuses(robot(), namespaced), [200])
  await hub.restart()
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), namespaced, one), [200, 403], 'each by its own answer')
})

void t.test('a request never allowed stays unknown, and a denied one stays denied', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  t.equal((await robot().get('/version')).status, 200)
  deny(isOf)
  t.equal((await robot().get(one)).status, 403)
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [403, 503])
})

void t.test('a caller is denied nothing that another caller was denied', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const operator = hub.as('operator', { token: cloud.sandbox.token('operator') })
  const kubelet = hub.as('kubelet')
  for (const client of [robot(), operator, kubelet]) t.equal((await client.get(one)).status, 200)
  deny(({ user }) => !user.name.endsWith(':robot'))
  for (const client of [operator, kubelet]) t.equal((await client.get(one)).status, 403)
  await goOffline(cloud, hub)
  t.equal((await operator.get(one)).status, 403)
  t.match(objectOf(await operator.get(one)), { message: /: The holder of this token cannot get/ })
  t.equal((await robot().get(one)).status, 200)
  t.equal(
    (await kubelet.get(one)).status,
    200,
    'the node has what it was given, whatever is denied',
  )
})

void t.test('a denial of an impersonated user does not count for the caller', async (t) => {
  const { cloud, hub, robot } = await withRobot(t)
  t.equal((await robot().get(one)).status, 200)
  cloud.sandbox.authorize(({ verb }) => verb !== 'get')
  const impersonating = await robot().send(one, { headers: { 'Impersonate-User': 'nobody' } })
  t.equal(impersonating.status, 403)
  await goOffline(cloud, hub)
  t.equal((await robot().get(one)).status, 200)
})

void t.test('a recorded token is not given after an API server has denied one', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const issued = async (): Promise<number> => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const path = '/api/v1/namespaces/default/serviceaccounts/robot/token'
    return (await robot().send(path, { method: 'POST', body })).status
  }
  t.equal(await issued(), 201)
  deny(({ user, subresource }) => user.name.endsWith(':robot') && subresource === 'token')
  t.equal(await issued(), 403)
  await goOffline(cloud, hub)
  t.equal(await issued(), 403)
})

void t.test('a review of a caller’s permissions counts as a decision, too', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const spec = (name: string): JsonObject => ({
    resourceAttributes: { verb: 'get', resource: 'configmaps', namespace: 'default', name },
  })
  const user = 'system:serviceaccount:default:robot'
  const groups = [
    'system:serviceaccounts',
    'system:serviceaccounts:default',
    'system:authenticated',
  ]
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [200, 200])
  deny(isOf)
  t.equal((await review(robot(), 'SelfSubjectAccessReview', spec('one'))).status, 201)
  const others = { ...spec('two'), user, groups: [...groups, 'system:masters'] }
  t.equal((await review(hub.as('kubelet'), 'SubjectAccessReview', others)).status, 201)
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [403, 200], 'it has other groups')
  await cloud.plug()
  await hub.online()
  const asked = { ...spec('two'), user, groups }
  t.equal((await review(hub.as('kubelet'), 'SubjectAccessReview', asked)).status, 201)
  deny(() => false)
  t.equal((await review(robot(), 'SelfSubjectAccessReview', spec('one'))).status, 201)
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [200, 403])
})

void t.test('a review is answered no after a denial of the request itself', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const ask = (name: string): Promise<Answer> =>
    review(robot(), 'SelfSubjectAccessReview', {
      resourceAttributes: { verb: 'get', resource: 'configmaps', namespace: 'default', name },
    })
  for (const name of ['one', 'two'])
    t.equal(objectAt(objectOf(await ask(name)), 'status')['allowed'], true)
  deny((asked) => isOf(asked) && asked.name === 'one')
  t.equal((await robot().get(one)).status, 403)
  await goOffline(cloud, hub)
  const denied = await ask('one')
  t.equal(denied.status, 201)
  t.match(objectOf(denied), { status: { allowed: false, reason: /^an API server denied it at / } })
  t.match(denied.headers.age, /^\d+$/)
  t.match(objectOf(await ask('two')), { status: { allowed: true } })
})

void t.test('a yes to a review with a selector is not repeated after a denial', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const ask = (namespace: string): Promise<Answer> =>
    review(robot(), 'SelfSubjectAccessReview', {
      resourceAttributes: {
        verb: 'list',
        resource: 'configmaps',
        namespace,
        labelSelector: { requirements: [{ key: 'app', operator: 'In', values: ['web'] }] },
      },
    })
  for (const namespace of ['default', 'other'])
    t.match(objectOf(await ask(namespace)), { status: { allowed: true } })
  deny(isOf)
  t.equal((await robot().get(namespaced)).status, 403)
  await goOffline(cloud, hub)
  t.equal((await ask('default')).status, 503)
  t.match(objectOf(await ask('other')), { status: { allowed: true } }, 'nothing of it was denied')
})

void t.test('a denied list is not answered from the shared record', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  cloud.sandbox.create(services, service('web', '10.96.0.9'))
  const web = '/api/v1/namespaces/default/services/web'
  await hub.as('kube-proxy').watch(allServices)
  await robot().watch(allServices)
  deny(({ user, resource }) => user.name.endsWith(':robot') && resource === 'services')
  t.equal((await robot().get(allServices)).status, 403)
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), allServices, web), [403, 503])
  t.equal((await hub.as('kube-proxy').get(allServices)).status, 200)
})

void t.test('a review that denies the whole closes the shared record as well', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  cloud.sandbox.create(services, service('web', '10.96.0.9'))
  const inDefault = '/api/v1/namespaces/default/services'
  await hub.as('kube-proxy').watch(allServices)
  await robot().watch(allServices)
  deny(({ user, resource }) => user.name.endsWith(':robot') && resource === 'services')
  const resourceAttributes = { verb: 'list', resource: 'services', version: 'v1' }
  await review(robot(), 'SelfSubjectAccessReview', { resourceAttributes })
  await goOffline(cloud, hub)
  const paths = [allServices, inDefault, `${inDefault}/web`]
  t.strictSame(await statuses(robot(), ...paths), [403, 503, 503])
  t.strictSame(await statuses(hub.as('kube-proxy'), ...paths), [200, 200, 200])
})

void t.test('a review counts whichever program has requested it', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t, ['--cache-components=kubelet'])
  cloud.sandbox.create(services, service('web', '10.96.0.9'))
  await hub.as('kubelet').watch(allServices)
  await robot().watch(allServices)
  deny(({ user, resource }) => user.name.endsWith(':robot') && resource === 'services')
  const resourceAttributes = { verb: 'list', resource: 'services', version: 'v1' }
  const curl = hub.as('curl/8.10.1', { token: await cloud.accountToken('robot') })
  await review(curl, 'SelfSubjectAccessReview', { resourceAttributes })
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), allServices), [403])
})

void t.test('a permission lost on the way to the disk overrules no denial', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  cloud.sandbox.create(services, service('web', '10.96.0.9'))
  await hub.as('kube-proxy').watch(allServices)
  await robot().watch(allServices)
  const file = join(hub.config.rootDir, 'access.json')
  const before = readFileSync(file)
  deny(({ user, resource }) => user.name.endsWith(':robot') && resource === 'services')
  t.equal((await robot().get('/api/v1/namespaces/default/services')).status, 403)
  await hub.stop()
  await cloud.unplug()
  writeFileSync(file, before)
  await hub.start()
  await hub.offline()
  t.strictSame(await statuses(robot(), allServices), [403])
})

void t.test('a withdrawn permission counts after kill -9', async (t) => {
  const cloud = await startCloud(t)
  populate(cloud)
  const hub = await startChildHub(t, { upstreams: [cloud], flags: ['--cache-components=*'] })
  await hub.online()
  const token = await cloud.accountToken('robot')
  const robot = (): Client => hub.as('robot', { token })
  t.equal((await robot().get(one)).status, 200)
  cloud.sandbox.authorize((asked) => !isOf(asked))
  t.equal((await robot().get(one)).status, 403)
  await hub.crash()
  await cloud.unplug()
  await hub.start()
  await hub.offline()
  t.equal((await robot().get(one)).status, 403)
})

void t.test('a caller denied more than is remembered gets 503 beyond that', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  t.strictSame(await statuses(robot(), namespaced, one), [200, 200])
  const ask = (name: string, namespace = 'default'): Promise<Answer> =>
    review(robot(), 'SelfSubjectAccessReview', {
      resourceAttributes: { verb: 'get', resource: 'configmaps', namespace, name },
    })
  t.match(objectOf(await ask('one')), { status: { allowed: true } })
  deny((asked) => isOf(asked) && asked.verb === 'get')
  const file = join(hub.config.rootDir, 'decisions.json')
  const isDenied = async (i: number): Promise<void> => {
    t.strictSame(await statuses(robot(), `${namespaced}/none-${i}`), [403])
  }
  for (let i = 0; i <= mostOfUser; i++) await isDenied(i)
  const written = statSync(file).mtimeMs
  for (let i = 1; i <= 8; i++) await isDenied(mostOfUser + i)
  t.equal(statSync(file).mtimeMs, written, 'nothing more is written')
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), one, namespaced), [503, 200])
  t.equal((await ask('one')).status, 503, 'a yes of before is not repeated')
  await cloud.plug()
  await hub.online()
  deny(() => false)
  t.match(objectOf(await ask('', '')), { status: { allowed: true } })
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), one, namespaced), [200, 200])
})

void t.test('decisions that cannot be read count as none', async (t) => {
  const { cloud, hub, robot } = await withRobot(t)
  t.equal((await robot().get(one)).status, 200)
  await cloud.unplug()
  for (const text of ['[', '{}', '[["x",[["get configmaps/",0,[["a"]]]]]]', '[["x",null]]']) {
    await hub.stop()
    writeFileSync(join(hub.config.rootDir, 'decisions.json'), text)
    await hub.start()
    await hub.offline()
    t.equal((await robot().get(one)).status, 200, text)
  }
})
