import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import { allServices, configMaps, service, services, type CloudServer } from '../kit/cloud.ts'
import { startOnlineHub, goOffline, startCloud, type TestHub } from '../kit/hub.ts'
import { reachable, reachableHost } from '../kit/reachable.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { StagedReplacement } from '../../src/hub/store/log/replacement.ts'
import { StoreFailure } from '../../src/hub/store/store.ts'

const name = 'yurt-hub-cfg'
const inForce = `ConfigMap kube-system/${name} is in force`
const unusable = `ConfigMap kube-system/${name} cannot be used`

const configMap = (data: JsonObject, more: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'kube-system' },
  data,
  ...more,
})

const kubernetes = '/api/v1/namespaces/default/services/kubernetes'
const original = '10.96.0.1'
const led = reachableHost

/** The address that `client` gets for the API server. */
const place = async (client: Client): Promise<unknown> =>
  at(objectOf(await client.get(kubernetes)), 'spec', 'clusterIP')

async function started(
  t: Teardown,
  cloud: CloudServer,
  ...flags: readonly string[]
): Promise<TestHub> {
  const at = await reachable(t)
  const hub = await startOnlineHub(t, {
    upstreams: [cloud],
    flags: ['--hub-config-map=yurt-hub-cfg', ...at.flags, ...flags],
    config: at.config,
  })
  return hub
}

async function cloudWithServices(t: Teardown): Promise<CloudServer> {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, service('kubernetes', original))
  return cloud
}

/** Resolves when the hub has logged `text` once more than it had. */
async function saysAgain(hub: TestHub, text: string, act: () => unknown): Promise<void> {
  const count = (): number => hub.lines.filter((line) => line.includes(text)).length
  const before = count()
  act()
  await hub.logs(() => count() > before)
}

void t.test('the ConfigMap adds components to filters while the hub runs', async (t) => {
  const cloud = await cloudWithServices(t)
  cloud.sandbox.create(configMaps, configMap({ masterservice: 'agent, other' }))
  const hub = await started(t, cloud)
  await hub.logged(inForce)
  t.equal(await place(hub.as('agent')), led)
  t.equal(await place(hub.as('kubelet')), led, 'those that it is made for stay')
  t.equal(await place(hub.as('somebody')), original)
  const { resourceVersion } = await hub.as('kube-proxy').list(allServices)
  const untouched = await hub.as('kube-proxy').watch(allServices, { resourceVersion })
  await saysAgain(hub, inForce, () =>
    cloud.sandbox.update(configMaps, configMap({ filter_masterservice: 'somebody' })),
  )
  t.equal(await place(hub.as('somebody')), led, 'keys of older releases count')
  t.equal(await place(hub.as('agent')), original)
  cloud.touch(services, 'kubernetes', 'default')
  t.equal((await untouched.next())?.type, 'MODIFIED', 'whom it does not concern has not noticed')
  await saysAgain(hub, `there is no ConfigMap kube-system/${name}`, () =>
    cloud.sandbox.delete(configMaps, name, 'kube-system'),
  )
  t.equal(await place(hub.as('somebody')), original, 'without it the flags alone count')
  t.equal(await place(hub.as('kubelet')), led)
  t.equal(await hub.metric('nodehub_config_map_reloads_total{result="success"}'), 3)
})

void t.test('the ConfigMap adds recorded components, with the next request', async (t) => {
  const cloud = await cloudWithServices(t)
  const hub = await started(t, cloud, '--cache-components=kubelet')
  await hub.logged('there is no ConfigMap')
  const recorded = (): Promise<number> => hub.metric('nodehub_recorded_total{kind="object"}')
  const operator = hub.as('operator')
  await operator.get(kubernetes)
  const before = await recorded()
  await saysAgain(hub, inForce, () =>
    cloud.sandbox.create(configMaps, configMap({ cache_agents: 'operator' })),
  )
  await operator.get(kubernetes)
  t.equal(await recorded(), before + 1)
  await hub.as('another').get(kubernetes)
  t.equal(await recorded(), before + 1)
  await saysAgain(hub, inForce, () =>
    cloud.sandbox.update(configMaps, configMap({ cache_agents: '*' })),
  )
  await hub.as('another').get(kubernetes)
  t.equal(await recorded(), before + 2)
})

void t.test(
  'an unusable ConfigMap leaves the last good one in force, and is reported',
  async (t) => {
    const cloud = await cloudWithServices(t)
    cloud.sandbox.create(configMaps, configMap({ masterservice: 'agent', colour: 'blue' }))
    const hub = await started(t, cloud)
    await hub.logged(inForce)
    t.ok(hub.lines.some((line) => line.includes('unknown keys are ignored: colour')))
    for (const bad of [
      configMap({ masterservice: 'two words' }),
      configMap({ masterservice: 'a,'.repeat(4_000) }),
      configMap({}, { binaryData: { masterservice: 'AAAA' } }),
    ]) {
      await saysAgain(hub, unusable, () => cloud.sandbox.update(configMaps, bad))
      t.equal(await place(hub.as('agent')), led)
      t.match(
        await hub.readyz(),
        /\[ \]configmap kube-system\/yurt-hub-cfg unusable since .*: masterservice: /,
      )
    }
    t.equal((await hub.ops.get('/readyz')).status, 200)
    t.equal(await hub.metric('nodehub_config_map_reloads_total{result="failure"}'), 3)
    await hub.restart()
    await hub.online()
    await hub.logged(unusable)
    t.equal(await place(hub.as('agent')), led, 'also after a restart')
    await saysAgain(hub, inForce, () => cloud.sandbox.update(configMaps, configMap({})))
    t.equal(await place(hub.as('agent')), original)
    t.notMatch(await hub.readyz(), /\[ \]configmap/i)
  },
)

void t.test('the ConfigMap stays in force offline, after a restart as well', async (t) => {
  const cloud = await cloudWithServices(t)
  cloud.sandbox.create(configMaps, configMap({ masterservice: 'agent', cache_agents: 'agent' }))
  const hub = await started(t, cloud)
  await hub.logged(inForce)
  t.equal(await place(hub.as('agent')), led)
  await goOffline(cloud, hub)
  t.equal(await place(hub.as('agent')), led)
  await hub.restart()
  t.equal(await place(hub.as('agent')), led)
  t.notMatch(await hub.readyz(), /\[ \]configmap/i)
})

void t.test('a ConfigMap that may not be read is reported, and requested again', async (t) => {
  const cloud = await cloudWithServices(t)
  cloud.sandbox.create(configMaps, configMap({ masterservice: 'agent' }))
  cloud.sandbox.authorize(({ resource }) => resource !== 'configmaps')
  const hub = await started(t, cloud)
  await hub.logged(`ConfigMap kube-system/${name} cannot be read (403)`)
  t.match(await hub.readyz(), /\[ \]ConfigMap kube-system\/yurt-hub-cfg cannot be read \(403\)/)
  t.equal((await hub.ops.get('/readyz')).status, 200)
  t.equal(await place(hub.as('agent')), original)
  cloud.sandbox.authorize(() => true)
  hub.hub.reconfigure(hub.config)
  await hub.logged(inForce)
  t.equal(await place(hub.as('agent')), led)
  t.notMatch(await hub.readyz(), /\[ \]configmap/i)
})

void t.test('the ConfigMap is followed where the store takes no list of it', async (t) => {
  const commit = Reflect.get(StagedReplacement.prototype, 'commit') as StagedReplacement['commit']
  t.teardown(() => void (StagedReplacement.prototype.commit = commit))
  StagedReplacement.prototype.commit = () => Promise.reject(new StoreFailure('no room'))
  const cloud = await cloudWithServices(t)
  const hub = await started(t, cloud)
  await cloud.sandbox.untilWatches(1, ({ path }) => path.includes('configmaps'))
  cloud.sandbox.create(configMaps, configMap({ masterservice: 'agent' }))
  await hub.logged(inForce)
  t.notMatch(await hub.readyz(), /cannot be read/)
})

void t.test('nothing else is read of that namespace', async (t) => {
  const cloud = await cloudWithServices(t)
  const hub = await started(t, cloud, '--namespace=hubs')
  await hub.logged('there is no ConfigMap hubs/yurt-hub-cfg')
  await cloud.sandbox.untilWatches(1, ({ path }) => path.includes('configmaps'))
  const asked = cloud.sandbox.requests.filter(({ path }) => path.includes('configmaps'))
  for (const { path, query } of asked) {
    t.equal(path, '/api/v1/namespaces/hubs/configmaps')
    t.equal(query.get('fieldSelector'), `metadata.name=${name}`)
  }
})
