import t from 'tap'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { Filters } from '../../../src/hub/filter/filters.ts'
import { ShownStates } from '../../../src/hub/filter/shown-states.ts'
import {
  at,
  objectOf,
  tableAccept,
  type Answer,
  type Client,
  type Watching,
} from '../../kit/client.ts'
import { allServices, service, services, startCloud, type CloudServer } from '../../kit/cloud.ts'
import { startHubParts, type PartsHub } from '../../kit/hub-parts.ts'
import { inputsOf } from '../../kit/inputs.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { rootFolder } from '../../kit/root-folder.ts'

const metadataAccept =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'

/** Withholds services by their address, which metadata does not tell. */
const byAddress: FilterDefinition = {
  name: 'by-address',
  rules: [
    {
      components: ['kubectl'],
      group: '',
      resources: ['services'],
      verbs: ['get', 'list', 'watch'],
    },
  ],
  onError: 'pass',
  needs: [],
  create: () => (each) =>
    each.value(['spec', 'clusterIP']) === '10.96.0.2' ? 'withhold' : 'leave',
}

const names = (answer: Answer): unknown[] => {
  const list = objectOf(answer)
  const all = (list['items'] ?? list['rows']) as { object?: object; metadata?: object }[]
  return all.map((each) => at({ of: (each.object ?? each) as never }, 'of', 'metadata', 'name'))
}

for (const [representation, accept] of Object.entries({
  tables: tableAccept,
  metadata: metadataAccept,
})) {
  void t.test(
    `${representation} leave out what is withheld of a stored whole object`,
    async (t) => {
      const cloud = await startCloud(t)
      cloud.sandbox.create(services, service('a', '10.96.0.1'))
      cloud.sandbox.create(services, service('b', '10.96.0.2'))
      const hub = await startHubParts(t, { upstream: cloud, filters: [byAddress] })
      const kubectl = hub.as('kubectl', { accept })
      t.strictSame(names(await kubectl.get(allServices)), ['a', 'b'], 'it cannot be evaluated yet')
      await hub.as('kube-proxy').list(allServices)
      const listed = await kubectl.get(allServices)
      t.strictSame(names(listed), ['a'])
      const { resourceVersion } = await kubectl.list(allServices)
      const watch = await kubectl.watch(allServices, { resourceVersion })
      cloud.sandbox.create(services, service('c', '10.96.0.3'))
      const [event] = await watch.take(1)
      t.equal(event?.type, 'ADDED')
    },
  )
}

/** Withholds the services that are named like a node of the pool. */
const byPool = (revision: string): FilterDefinition => ({
  ...byAddress,
  revision,
  needs: ['poolNodes'],
  create:
    ({ poolNodes }) =>
    ({ name }) =>
      poolNodes?.includes(name) ? 'withhold' : 'leave',
})

interface Hub extends PartsHub {
  readonly filters: Filters
}

async function startHub(
  t: Teardown,
  upstream: CloudServer,
  directory: string,
  poolNodes: readonly string[],
): Promise<Hub> {
  const filters = new Filters([byPool('1')], inputsOf({ poolNodes }), {
    onFailure: () => undefined,
    warn: () => undefined,
  })
  const filtering = {
    filters,
    shown: new ShownStates(),
    hooks: { onDifference: () => undefined, onExpired: () => undefined },
  }
  const hub = await startHubParts(t, { upstream, directory, filtering })
  return { ...hub, filters }
}

const watched = async (client: Client, resourceVersion: string): Promise<Watching> =>
  client.watch(`${allServices}?allowWatchBookmarks=true`, { resourceVersion })

/** What the next events say of which object. */
const told = async (watch: Watching, count: number): Promise<string[]> =>
  (await watch.take(count)).map(({ type, object }) => {
    if (type === 'ERROR') return `ERROR ${Number(at(object, 'code'))}`
    return `${type} ${(at(object, 'metadata', 'name') as string | undefined) ?? ''}`.trim()
  })

const accepts = {
  metadata: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  'metadata in protobuf':
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
}

for (const [representation, accept] of Object.entries(accepts)) {
  const list = accept.replace('as=PartialObjectMetadata;', 'as=PartialObjectMetadataList;')
  const begun = async (t: Teardown) => {
    const cloud = await startCloud(t)
    for (const [at, name] of ['a', 'b', 'c'].entries()) {
      cloud.sandbox.create(services, service(name, `10.96.0.${at + 10}`))
    }
    const directory = rootFolder(t)
    const hub = await startHub(t, cloud, directory, ['c'])
    await hub.as('kube-proxy').list(allServices)
    const kubectl = hub.as('kubectl', { accept })
    const listed = await kubectl.withOptions({ accept: list }).list(allServices)
    return { cloud, directory, hub, kubectl, resourceVersion: listed.resourceVersion }
  }

  void t.test(
    `a watch of ${representation} gets what is withheld now, and what is not any more`,
    async (t) => {
      const { cloud, hub, kubectl, resourceVersion } = await begun(t)
      const watch = await watched(kubectl, resourceVersion)
      hub.filters.setInputs({ poolNodes: ['a'] })
      t.strictSame(await told(watch, 3), ['DELETED a', 'ADDED c', 'BOOKMARK'])
      cloud.sandbox.create(services, service('d', '10.96.0.99'))
      t.strictSame(await told(watch, 1), ['ADDED d'], 'and goes on')
      hub.filters.setDefinitions([byPool('2')])
      t.strictSame(await told(watch, 1), ['ERROR 410'], 'of other filters it has to list')
    },
  )
}
