import t, { type Test } from 'tap'
import type { FilterDefinition } from '../../src/hub/filter/filter.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { nameOf, type Client, type ClientOptions } from '../kit/client.ts'
import type { ReceivedEvent } from '../kit/client-watch.ts'
import { configMaps, pods, podsOfNode } from '../kit/cloud.ts'
import {
  onlineNode,
  goOnline,
  goOffline,
  startChildHub,
  startCloud,
  startTestHub,
  type CloudServer,
} from '../kit/hub.ts'
import { startHubParts } from '../kit/hub-parts.ts'

const versionOf = ({ object }: ReceivedEvent): string =>
  (object['metadata'] as { resourceVersion: string }).resourceVersion

const framesOf = (events: readonly ReceivedEvent[]): string[] =>
  events.map(({ frame }) => frame.toString('latin1'))

const remove = ({ sandbox }: CloudServer, name: string): unknown =>
  sandbox.delete(pods, name, 'default', { gracePeriodSeconds: 0 })

/**
 * All that a watch says in its time: a second, or longer where a busy machine takes longer for the
 * `least` that has to come.
 */
const within = async (
  client: Client,
  path: string,
  query: Record<string, string>,
  least: number,
): Promise<ReceivedEvent[]> => {
  for (let seconds = 1; ; seconds *= 4) {
    const watch = await client.watch(path, { ...query, timeoutSeconds: String(seconds) })
    const told = await watch.rest()
    if (told.length >= least || seconds > 10) return told
  }
}

interface Told {
  /** The version of the list before. */
  readonly from: string
  readonly events: readonly ReceivedEvent[]
}

/**
 * What a client is told while the cloud is there: pods come, change and go, one of them for good
 * and one to come back.
 */
async function history(cloud: CloudServer, kubelet: Client): Promise<Told> {
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  cloud.addPods('c')
  cloud.touch(pods, 'a', 'default')
  remove(cloud, 'b')
  cloud.touch(pods, 'a', 'default')
  remove(cloud, 'c')
  cloud.addPods('c')
  return { from: resourceVersion, events: await watch.take(6) }
}

const expired = { type: 'ERROR', object: { code: 410, reason: 'Expired' } }

/** From the last version that the client was sent it goes on; from an earlier one it lists. */
async function resumes(t: Test, kubelet: Client, { from, events }: Told): Promise<void> {
  const versions = [from, ...events.map(versionOf)]
  const last = versions.at(-1)!
  t.strictSame(await within(kubelet, podsOfNode, { resourceVersion: last }, 0), [])
  for (const resourceVersion of versions) {
    if (resourceVersion === last) continue
    const [error, ...rest] = await within(kubelet, podsOfNode, { resourceVersion }, 1)
    t.match(error, expired, resourceVersion)
    t.strictSame(rest, [])
  }
}

/** A hub that ends and comes again, over the same state. */
interface Ending {
  as(component: string, options?: Partial<ClientOptions>): Client
  online(): Promise<void>
  readonly down: () => Promise<void>
  readonly up: () => Promise<void>
}

const endings: Record<string, (t: Test, cloud: CloudServer) => Promise<Ending>> = {
  'a kill': async (t, cloud) => {
    const hub = await startChildHub(t, { upstreams: [cloud] })
    return {
      as: (...asked) => hub.as(...asked),
      online: () => hub.online(),
      down: () => hub.crash(),
      up: () => hub.start(),
    }
  },
  'a restart': async (t, cloud) => {
    const hub = await startTestHub(t, { upstreams: [cloud] })
    return {
      as: (...asked) => hub.as(...asked),
      online: () => hub.online(),
      down: () => hub.stop(),
      up: async () => void (await hub.start()),
    }
  },
}

for (const [ending, start] of Object.entries(endings)) {
  for (const encoding of ['json', 'protobuf'] as const) {
    void t.test(
      `F7: after ${ending} a watch goes on offline where it was: ${encoding}`,
      async (t) => {
        const cloud = await startCloud(t)
        cloud.addPods('a', 'b')
        const hub = await start(t, cloud)
        await hub.online()
        const told = await history(cloud, hub.as('kubelet', { encoding }))
        // The very moment a client has heard of the last.
        await hub.down()
        await cloud.unplug()
        await hub.up()
        const kubelet = hub.as('kubelet', { encoding })
        await resumes(t, kubelet, told)
        const { from, events } = told
        const last = versionOf(events.at(-1)!)
        const watch = await kubelet.watch(podsOfNode, { resourceVersion: last })
        await goOnline(cloud, hub)
        remove(cloud, 'a')
        const more = await watch.take(1)
        t.strictSame(
          more.map(({ type, object }) => `${type} ${nameOf(object)}`),
          ['DELETED default/a'],
        )
        await hub.down()
        await cloud.unplug()
        await hub.up()
        await resumes(t, hub.as('kubelet', { encoding }), { from, events: [...events, ...more] })
      },
    )
  }
}

void t.test('a watch event of a part of a list is never taken back', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'c')
  await hub.as('kubelet').list(podsOfNode)
  await goOffline(cloud, hub)
  const part = `${podsOfNode}&labelSelector=app%3Dc`
  const { resourceVersion } = await hub.as('kubelet').list(part)
  await goOnline(cloud, hub)
  const [error] = await (await hub.as('kubelet').watch(part, { resourceVersion })).rest()
  t.match(error, { type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  const own = await hub.as('kubelet').list(part)
  const watch = await hub.as('kubelet').watch(part, { resourceVersion: own.resourceVersion })
  cloud.touch(pods, 'c', 'default')
  const [told] = await watch.take(1)
  await goOffline(cloud, hub)
  const again = await hub.as('kubelet').list(part)
  t.strictSame(again.names, ['default/c'])
  t.equal(again.resourceVersion, versionOf(told!))
})

void t.test('F7: after a list a watch goes on from its version alone', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  const kubelet = hub.as('kubelet')
  const told = await history(cloud, kubelet)
  const last = versionOf(told.events.at(-1)!)
  // The cloud has moved on, though not in this.
  cloud.sandbox.create(configMaps, { metadata: { name: 'other', namespace: 'default' } })
  const confirmed = await kubelet.list(podsOfNode)
  t.not(confirmed.resourceVersion, last)
  await cloud.unplug()
  await hub.restart()
  const again = { resourceVersion: confirmed.resourceVersion }
  t.strictSame(await within(hub.as('kubelet'), podsOfNode, again, 0), [])
  await goOnline(cloud, hub)
  remove(cloud, 'a')
  const { resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  await cloud.unplug()
  await hub.restart()
  for (const version of [told.from, last, confirmed.resourceVersion]) {
    const [error] = await within(hub.as('kubelet'), podsOfNode, { resourceVersion: version }, 1)
    t.match(error, expired, version)
  }
  t.strictSame(await within(hub.as('kubelet'), podsOfNode, { resourceVersion }, 0), [])
})

void t.test('F5: a client that saw a deletion finds it done, another one lists', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startChildHub(t, { upstreams: [cloud] })
  await hub.online()
  const { resourceVersion } = await hub.as('kubelet').list(podsOfNode)
  const watch = await hub.as('kubelet').watch(podsOfNode, { resourceVersion })
  remove(cloud, 'a')
  const [deletion] = await watch.take(1)
  for (let round = 0; round < 2; round++) {
    await hub.crash()
    await cloud.unplug()
    await hub.start()
    const kubelet = hub.as('kubelet')
    t.strictSame((await kubelet.list(podsOfNode)).names, ['default/b'])
    // One that only no longer matched would be answered so, too.
    t.not((await kubelet.get('/api/v1/namespaces/default/pods/a')).status, 200)
    const [error] = await within(kubelet, podsOfNode, { resourceVersion }, 1)
    t.match(error, expired)
    const after = await within(kubelet, podsOfNode, { resourceVersion: versionOf(deletion!) }, 0)
    t.strictSame(after, [])
  }
})

/** Withholds what is labelled so. */
const hiding: FilterDefinition = {
  name: 'hiding',
  rules: [{ components: ['kubelet'], group: '', resources: ['pods'], verbs: ['list', 'watch'] }],
  onError: 'pass',
  needs: [],
  create: () => (object) => (object.label('hidden') === undefined ? 'leave' : 'withhold'),
}

void t.test('F7: what filters made of events they make of them again', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startHubParts(t, { upstream: cloud, filters: [hiding] })
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  const label = (name: string, labels: JsonObject): void => {
    const found = cloud.sandbox.get(pods, name, 'default')!
    cloud.sandbox.update(pods, { ...found, metadata: { ...found.metadata, labels } })
  }
  label('a', { hidden: 'yes' })
  label('a', { hidden: 'still' })
  label('a', {})
  label('b', { hidden: 'yes' })
  remove(cloud, 'b')
  cloud.addPods('c')
  const events = await watch.take(4)
  t.strictSame(
    events.map(({ type, object }) => `${type} ${nameOf(object)}`),
    ['DELETED default/a', 'ADDED default/a', 'DELETED default/b', 'ADDED default/c'],
  )
  await cloud.unplug()
  for (const [index, from] of [resourceVersion, ...events.map(versionOf)].entries()) {
    const told = await within(kubelet, podsOfNode, { resourceVersion: from }, events.length - index)
    t.strictSame(framesOf(told), framesOf(events.slice(index)))
  }
})
