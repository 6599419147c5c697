import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { FilterDefinition } from '../../src/hub/filter/filter.ts'
import type { Filters } from '../../src/hub/filter/filters.ts'
import type { Inputs } from '../../src/hub/filter/inputs.ts'
import { ShownStates } from '../../src/hub/filter/shown-states.ts'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import { at, nameOf, type Client, type Watching, withInitialEvents } from '../kit/client.ts'
import { allServices, service, services, startCloud, type CloudServer } from '../kit/cloud.ts'
import { startHubParts, type PartsHub } from '../kit/hub-parts.ts'
import { filtersOf } from '../kit/inputs.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { until } from '../kit/until.ts'

/**
 * Hides the services that are named like a node of the pool, and tells of others what the
 * annotations say.
 */
const hiding = (rest: Partial<FilterDefinition> = {}): FilterDefinition => ({
  name: 'hiding',
  rules: [
    {
      components: ['kube-proxy'],
      group: '',
      resources: ['services'],
      verbs: ['get', 'list', 'watch'],
    },
  ],
  onError: 'pass',
  needs: ['poolNodes', 'topologies'],
  create:
    ({ poolNodes, topologies }) =>
    ({ namespace, name }) => {
      if (poolNodes?.includes(name)) return 'withhold'
      const value = topologies?.[`${namespace}/${name}`]
      return value === undefined ? 'leave' : [{ op: 'set', path: ['spec', 'externalName'], value }]
    },
  ...rest,
})

interface Hub extends PartsHub {
  readonly filters: Filters
  /** Why clients had to list, in turn. */
  readonly expired: string[]
}

interface HubOptions {
  readonly definitions?: readonly FilterDefinition[]
  readonly inputs?: Partial<Inputs>
  readonly directory?: string
}

async function startHub(
  t: Teardown,
  upstream: CloudServer,
  { definitions = [hiding()], inputs = {}, directory }: HubOptions = {},
): Promise<Hub> {
  const filters = filtersOf(definitions, { poolNodes: [], ...inputs })
  const expired: string[] = []
  const hub = await startHubParts(t, {
    upstream,
    filtering: {
      filters,
      shown: new ShownStates(),
      onExpired: (_, why) => expired.push(why),
    },
    ...(directory !== undefined && { directory }),
  })
  return { ...hub, filters, expired }
}

function folder(t: Teardown): string {
  const made = mkdtempSync(join(tmpdir(), 'nodehub-inputs-'))
  t.teardown(() => rmSync(made, { recursive: true, force: true }))
  return made
}

async function cloudWith(t: Teardown, ...names: string[]): Promise<CloudServer> {
  const cloud = await startCloud(t)
  for (const [at, name] of names.entries()) {
    cloud.sandbox.create(services, service(name, `10.96.0.${at + 10}`))
  }
  return cloud
}

async function offline({ cloud: link }: PartsHub): Promise<void> {
  await until('the hub to be offline', () => link.online === false)
}

/** A client that has listed all services, and watches them from there on. */
async function informer(client: Client, query = '&allowWatchBookmarks=true') {
  const { resourceVersion, names } = await client.list(`${allServices}?resourceVersion=0`)
  const watch = await client.watch(`${allServices}?timeout=60s${query}`, { resourceVersion })
  return { resourceVersion, names, watch }
}

const resume = (client: Client, resourceVersion: string): Promise<Watching> =>
  client.watch(`${allServices}?allowWatchBookmarks=true`, { resourceVersion })

const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

/**
 * What the next events say, with the address that the filter has written, and the versions of
 * bookmarks.
 */
const told = async (watch: Watching, count: number): Promise<string[]> =>
  (await watch.take(count)).map(({ type, object }) => {
    if (type === 'ERROR') return `ERROR ${text(object['code'])}`
    if (type === 'BOOKMARK') return `BOOKMARK ${text(at(object, 'metadata', 'resourceVersion'))}`
    return `${type} ${nameOf(object)} ${text(at(object, 'spec', 'externalName'))}`.trim()
  })

const encodings: readonly Encoding[] = ['json', 'protobuf']

for (const encoding of encodings) {
  void t.test(`when inputs change a client of the filter lists once: ${encoding}`, async (t) => {
    const cloud = await cloudWith(t, 'a', 'b', 'c')
    const hub = await startHub(t, cloud)
    const client = hub.as('kube-proxy', { encoding })
    const others = await informer(hub.as('coredns', { encoding }))
    const { watch } = await informer(client)
    hub.filters.setInputs({ poolNodes: ['a'], topologies: { 'default/b': 'there' } })
    t.strictSame(await told(watch, 1), ['ERROR 410'])
    t.strictSame(await watch.rest(), [], 'and it is over')
    const again = await informer(client)
    t.strictSame(again.names, ['default/b', 'default/c'])
    cloud.sandbox.update(services, service('b', '10.96.0.98'))
    cloud.sandbox.create(services, service('d', '10.96.0.99'))
    t.strictSame(await told(again.watch, 2), ['MODIFIED default/b there', 'ADDED default/d'])
    t.strictSame(
      await told(others.watch, 2),
      ['MODIFIED default/b', 'ADDED default/d'],
      'others hear nothing of it',
    )
    t.equal(hub.expired.length, 1)
  })

  void t.test(`so it does offline: ${encoding}`, async (t) => {
    const cloud = await cloudWith(t, 'a', 'b')
    const hub = await startHub(t, cloud)
    const client = hub.as('kube-proxy', { encoding })
    const { resourceVersion, watch: online } = await informer(client)
    await cloud.unplug()
    await offline(hub)
    online.hangUp()
    const watch = await resume(client, resourceVersion)
    hub.filters.setInputs({ poolNodes: ['b'] })
    t.strictSame(await told(watch, 1), ['ERROR 410'])
    t.strictSame((await client.list(allServices)).names, ['default/a'])
  })
}

void t.test('a client that was away while the inputs changed lists once', async (t) => {
  const cloud = await cloudWith(t, 'a', 'b')
  const hub = await startHub(t, cloud)
  const client = hub.as('kube-proxy')
  const before = await client.list(allServices)
  hub.filters.setInputs({ poolNodes: ['a'] })
  t.strictSame(await told(await resume(client, before.resourceVersion), 1), ['ERROR 410'])
  const { names, watch } = await informer(client)
  t.strictSame(names, ['default/b'])
  cloud.sandbox.delete(services, 'b', 'default')
  t.strictSame(await told(watch, 1), ['DELETED default/b'])
  t.equal(hub.expired.length, 1)
})

void t.test('when the filters change, each collection is listed once', async (t) => {
  const cloud = await cloudWith(t, 'a', 'b')
  const hub = await startHub(t, cloud)
  const client = hub.as('kube-proxy')
  const coredns = await informer(hub.as('coredns'))
  const first = await informer(client)
  hub.filters.setDefinitions([hiding({ revision: '2', create: () => () => 'withhold' })])
  t.strictSame(await told(first.watch, 1), ['ERROR 410'])
  t.strictSame(await first.watch.rest(), [], 'and it is over')
  const again = await informer(client)
  t.strictSame(again.names, [])
  cloud.sandbox.create(services, service('c', '10.96.0.99'))
  t.strictSame(await told(coredns.watch, 1), ['ADDED default/c'])
  again.watch.hangUp()
  const later = await resume(client, again.resourceVersion)
  hub.filters.setAdditionalComponents(new Map([['hiding', new Set(['coredns'])]]))
  t.strictSame(await told(coredns.watch, 1), ['ERROR 410'], 'a filter acts for it now')
  const covered = await informer(hub.as('coredns'))
  t.strictSame(covered.names, [])
  hub.filters.setAdditionalComponents(new Map())
  t.strictSame(await told(covered.watch, 1), ['ERROR 410'], 'and now none does')
  t.strictSame((await informer(hub.as('coredns'))).names, ['default/a', 'default/b', 'default/c'])
  t.equal(hub.expired.length, 3, 'the other does not expire again')
  later.hangUp()
})

for (const [what, poolNodes] of Object.entries({ 'the same': ['a'], other: ['b'] })) {
  void t.test(`after a restart with ${what} inputs a client lists once`, async (t) => {
    const cloud = await cloudWith(t, 'a', 'b')
    const directory = folder(t)
    const before = await startHub(t, cloud, { directory, inputs: { poolNodes: ['a'] } })
    const { resourceVersion, watch } = await informer(before.as('kube-proxy'))
    watch.hangUp()
    await before.stop()
    const after = await startHub(t, cloud, { directory, inputs: { poolNodes } })
    const client = after.as('kube-proxy')
    t.strictSame(await told(await resume(client, resourceVersion), 1), ['ERROR 410'])
    const again = await informer(client)
    t.strictSame(again.names, [poolNodes.includes('a') ? 'default/b' : 'default/a'])
    const [left = ''] = again.names
    cloud.sandbox.delete(services, left.replace('default/', ''), 'default')
    t.strictSame(await told(again.watch, 1), [`DELETED ${left}`])
    t.strictSame(after.expired, ['the hub does not know what this client was shown'])
  })
}

void t.test('a client that begins with a WatchList begins once more', async (t) => {
  const cloud = await cloudWith(t, 'a', 'b')
  const hub = await startHub(t, cloud, { inputs: { poolNodes: ['a'] } })
  const client = hub.as('kube-proxy')
  const first = await client.watch(allServices, withInitialEvents)
  const [event, bookmark = ''] = await told(first, 2)
  t.equal(event, 'ADDED default/b')
  first.hangUp()
  const resumed = await resume(client, bookmark.replace('BOOKMARK ', ''))
  hub.filters.setInputs({ poolNodes: ['b'] })
  t.strictSame(await told(resumed, 1), ['ERROR 410'])
  const again = await client.watch(allServices, withInitialEvents)
  t.strictSame(await told(again, 2), ['ADDED default/a', bookmark])
  cloud.sandbox.delete(services, 'a', 'default')
  t.strictSame(await told(again, 1), ['DELETED default/a'])
  t.equal(hub.expired.length, 1)
})
