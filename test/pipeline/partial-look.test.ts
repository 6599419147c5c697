import t from 'tap'
import type { FilterDefinition } from '../../src/filter/filter.ts'
import { at, objectOf, tableAccept, type Answer } from '../kit/client.ts'
import { allServices, service, services, startCloud } from '../kit/cloud.ts'
import { startHubParts } from '../kit/hub-parts.ts'

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

for (const [form, accept] of Object.entries({ tables: tableAccept, metadata: metadataAccept })) {
  void t.test(`${form} leave out what is withheld of a stored whole object`, async (t) => {
    const cloud = await startCloud(t)
    cloud.sandbox.create(services, service('a', '10.96.0.1'))
    cloud.sandbox.create(services, service('b', '10.96.0.2'))
    const hub = await startHubParts(t, { upstream: cloud, filters: [byAddress] })
    const kubectl = hub.as('kubectl', { accept })
    t.strictSame(names(await kubectl.get(allServices)), ['a', 'b'], 'nobody can tell yet')
    await hub.as('kube-proxy').list(allServices)
    const listed = await kubectl.get(allServices)
    t.strictSame(names(listed), ['a'])
    const { resourceVersion } = await kubectl.list(allServices)
    const watch = await kubectl.watch(allServices, { resourceVersion })
    cloud.sandbox.create(services, service('c', '10.96.0.3'))
    const [event] = await watch.take(1)
    t.equal(event?.type, 'ADDED')
  })
}
