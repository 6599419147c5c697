import t from 'tap'
import { showing, type FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { at, objectOf } from '../../kit/client.ts'
import { allServices, service, services, startCloud } from '../../kit/cloud.ts'
import { startHubParts } from '../../kit/hub-parts.ts'

const inDefault = '/api/v1/namespaces/default/services'

/** Marks services, and withholds those that are named so. */
const marking: FilterDefinition = {
  name: 'marking',
  rules: [{ components: ['kube-proxy'], group: '', resources: ['services'], verbs: showing }],
  onError: 'pass',
  needs: [],
  create:
    () =>
    ({ name }) =>
      name === 'hidden'
        ? 'withhold'
        : [{ op: 'set', path: ['spec', 'externalName'], value: 'marked' }],
}

const written = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  ...service(name, '10.96.0.9'),
})

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a withheld object is shown to its writer alone, and absent to others: ${encoding}`,
    async (t) => {
      const cloud = await startCloud(t)
      const hub = await startHubParts(t, { upstream: cloud, filters: [marking] })
      const client = hub.as('kube-proxy', { encoding })
      const created = await client.send(inDefault, { method: 'POST', body: written('hidden') })
      t.equal(created.status, 201)
      t.equal(at(objectOf(created), 'metadata', 'name'), 'hidden')
      t.match(objectOf(await client.get(`${inDefault}/hidden`)), {
        kind: 'Status',
        code: 404,
        reason: 'NotFound',
        details: { name: 'hidden', kind: 'services' },
      })
      t.strictSame((await client.list(allServices)).names, [])
    },
  )
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a deleted collection is shown filtered, as its list is: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    for (const name of ['a', 'b', 'hidden']) {
      cloud.sandbox.create(services, service(name, '10.96.0.9'))
    }
    const hub = await startHubParts(t, { upstream: cloud, filters: [marking] })
    const client = hub.as('kube-proxy', { encoding })
    const deleted = await client.send(inDefault, { method: 'DELETE' })
    t.equal(deleted.status, 200)
    t.match(objectOf(deleted), {
      kind: 'ServiceList',
      items: [
        { metadata: { name: 'a' }, spec: { externalName: 'marked' } },
        { metadata: { name: 'b' }, spec: { externalName: 'marked' } },
      ],
    })
    t.equal(at(objectOf(deleted), 'items', 2), undefined)
    t.strictSame((await cloud.as('kubectl').list(allServices)).names, [], 'all of them are gone')
    const others = await hub.as('kube-proxy', { encoding }).send(inDefault, { method: 'DELETE' })
    t.equal(others.status, 200, 'there may be none')
    t.equal(at(objectOf(others), 'items', 0), undefined)
  })
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`unrecorded answers are filtered like the rest: ${encoding}`, async (t) => {
    const cloud = await startCloud(t)
    for (const name of ['a', 'hidden']) cloud.sandbox.create(services, service(name, '10.96.0.9'))
    const hub = await startHubParts(t, { upstream: cloud, filters: [marking] })
    const client = hub.as('kube-proxy', { encoding })
    const listed = await client.list(`${allServices}?pretty=true`)
    t.strictSame(listed.names, ['default/a'])
    t.equal(at(objectOf(listed.answer), 'items', 0, 'spec', 'externalName'), 'marked')
    const { resourceVersion } = listed
    const watch = await client.watch(`${allServices}?pretty=true`, { resourceVersion })
    cloud.sandbox.update(services, service('hidden', '10.96.0.10'))
    cloud.sandbox.update(services, service('a', '10.96.0.10'))
    const shown = await watch.take(2)
    // What it was before is not known: it does no harm to who has never seen it.
    t.match(shown[0], { type: 'DELETED', object: { metadata: { name: 'hidden' } } })
    t.match(shown[1], { type: 'MODIFIED', object: { spec: { externalName: 'marked' } } })
  })
}

void t.test('an answer without objects passes as it came', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startHubParts(t, { upstream: cloud, filters: [marking] })
  const client = hub.as('kube-proxy')
  const missing = await client.send(`${inDefault}/none`, { method: 'DELETE' })
  t.equal(missing.status, 404)
  t.match(objectOf(missing), { kind: 'Status', reason: 'NotFound' })
  const refused = await client.send(inDefault, { method: 'POST', body: '{"kind":"Service"' })
  t.match(objectOf(refused), { kind: 'Status', code: 400 })
})
