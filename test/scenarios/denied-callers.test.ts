import t from 'tap'
import type { Attributes } from '../../src/sandbox/authentication.ts'
import { tableAccept, type Client } from '../kit/client.ts'
import {
  allServices,
  configMaps,
  service,
  serviceAccounts,
  services,
  type CloudServer,
} from '../kit/cloud.ts'
import { startOnlineHub, goOffline, goOnline, startChildHub, startCloud } from '../kit/hub.ts'

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
  const hub = await startOnlineHub(t, {
    upstreams: [cloud],
    flags: flags.length > 0 ? flags : ['--cache-components=*'],
  })
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
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [503, 200])
  await hub.restart()
  await hub.offline()
  t.strictSame(await statuses(robot(), one, `${namespaced}/two`), [503, 200])
})

void t.test('a denied list is not answered from its record, nor are its objects', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  t.strictSame(await statuses(robot(), everywhere, one), [200, 200])
  deny((asked) => isOf(asked) && asked.verb !== 'get')
  t.equal((await robot().get(everywhere)).status, 403)
  await goOffline(cloud, hub)
  const labelled = `${everywhere}?labelSelector=app%3Dweb`
  t.strictSame(await statuses(robot(), everywhere, labelled), [503, 503])
  t.equal((await robot().get(namespaced)).status, 503, 'only the wider list has it')
  t.equal((await robot().get(`${namespaced}/two`)).status, 503, 'only the list has it')
  t.equal((await robot().get(one)).status, 200, 'it was got by its name')
})

void t.test('a denied get or list takes all Tables of the resource back', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const kubectl = robot().withOptions({ accept: tableAccept })
  const read = [everywhere, namespaced, one]
  for (const denied of [namespaced, one]) {
    deny(() => false)
    t.strictSame(await statuses(kubectl, ...read, allServices), [200, 200, 200, 200])
    deny(isOf)
    t.equal((await robot().get(denied)).status, 403)
    await goOffline(cloud, hub)
    t.strictSame(await statuses(kubectl, ...read, allServices), [503, 503, 503, 200])
    await goOnline(cloud, hub)
  }
})

void t.test('a denied watch does not begin from the record', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const { resourceVersion } = await robot().list(namespaced)
  const watch = `${namespaced}?watch=true&resourceVersion=${resourceVersion}`
  deny((asked) => isOf(asked) && asked.verb === 'watch')
  t.strictSame(await statuses(robot(), watch), [403])
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), watch, namespaced), [503, 503])
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
  t.strictSame(await statuses(robot(), namespaced, one), [200, 200], 'the list has it')
})

void t.test('a caller is denied nothing that another caller was denied', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const operator = hub.as('operator', { token: cloud.sandbox.token('operator') })
  const kubelet = hub.as('kubelet')
  for (const client of [robot(), operator, kubelet]) t.equal((await client.get(one)).status, 200)
  deny(({ user }) => !user.name.endsWith(':robot'))
  for (const client of [operator, kubelet]) t.equal((await client.get(one)).status, 403)
  await goOffline(cloud, hub)
  t.equal((await operator.get(one)).status, 503)
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
  t.equal(await issued(), 503)
})

void t.test('a denied list is not answered from the copy that others have read', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  cloud.sandbox.create(services, service('web', '10.96.0.9'))
  const web = '/api/v1/namespaces/default/services/web'
  await hub.as('kube-proxy').list(allServices)
  t.strictSame(await statuses(robot(), allServices, web), [200, 200])
  deny(({ user, resource }) => user.name.endsWith(':robot') && resource === 'services')
  t.strictSame(await statuses(robot(), allServices, web), [403, 403])
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), allServices, web), [503, 503])
  t.equal((await hub.as('kube-proxy').get(allServices)).status, 200)
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
  t.equal((await robot().get(one)).status, 503)
})

void t.test('a denied list of one namespace leaves those of others', async (t) => {
  const { cloud, hub, robot, deny } = await withRobot(t)
  const inSystem = '/api/v1/namespaces/kube-system/configmaps'
  const named = `${namespaced}?fieldSelector=metadata.name%3Done`
  t.strictSame(
    await statuses(robot(), namespaced, inSystem, named, everywhere),
    [200, 200, 200, 200],
  )
  deny((asked) => isOf(asked) && asked.namespace === 'default' && !asked.name)
  t.equal((await robot().get(namespaced)).status, 403)
  await goOffline(cloud, hub)
  t.strictSame(await statuses(robot(), inSystem, named), [200, 200])
  t.strictSame(await statuses(robot(), namespaced, everywhere), [503, 503])
})
