import t from 'tap'
import { startCloud, startTestHub } from '../../kit/hub.ts'
import type { TestHub } from '../../kit/hub.ts'
import { textAt } from '../../../src/api/kube/json-at.ts'
import { objectOf, type Client } from '../../kit/client.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const documents = ['/version', '/api', '/apis', '/apis/apps/v1', '/openapi/v2', '/openapi/v3']

/** A hub with two callers whose tokens an API server has accepted, and the node's kubelet. */
async function start(t: Parameters<typeof startCloud>[0]) {
  const cloud = await startCloud(t)
  const hub: TestHub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--cache-components=*'],
  })
  await hub.online()
  const caller = (name: string): Client => hub.as(name, { token: cloud.sandbox.token(name) })
  const [reader, other] = [caller('reader'), caller('other')]
  for (const each of [reader, other]) await each.get('/api/v1/namespaces/default/configmaps')
  return { cloud, hub, reader, other, kubelet: hub.as('kubelet') }
}

void t.test('a document is given offline only to callers that the cloud gave it to', async (t) => {
  const { cloud, hub, reader, other, kubelet } = await start(t)
  for (const path of documents) t.equal((await reader.get(path)).status, 200, path)
  t.equal((await kubelet.get('/version')).status, 200)
  await cloud.unplug()
  await hub.offline()
  for (const path of documents) {
    t.equal((await reader.get(path)).status, 200, path)
    t.equal((await other.get(path)).status, 503, `${path} was given to another caller only`)
  }
  t.equal((await kubelet.get('/version')).status, 200)
  t.equal((await kubelet.get('/api')).status, 503, 'nor to the node')
  t.equal((await other.get('/api/v1/namespaces/default/configmaps')).status, 200)
})

void t.test('a document is given in the representation that a client takes', async (t) => {
  const { cloud, hub, reader } = await start(t)
  const typeOf = async (accept: string): Promise<string | undefined> => {
    const { status, headers } = await reader.withOptions({ accept }).get('/apis')
    return status === 200 ? headers['content-type'] : String(status)
  }
  t.equal(await typeOf(`${aggregated},application/json`), aggregated)
  await cloud.unplug()
  await hub.offline()
  t.equal(await typeOf(`${aggregated},application/json`), aggregated)
  t.equal(await typeOf(`application/yaml;q=0.1, ${aggregated}`), aggregated)
  t.equal(await typeOf('application/json'), '503', 'which was never read')
  t.equal(await typeOf('application/yaml'), '503')
})

void t.test('a hash and a time-out in its query change nothing of a document', async (t) => {
  const { cloud, hub, reader } = await start(t)
  const index = objectOf(await reader.get('/openapi/v3'))
  const url = textAt(index, 'paths', 'api/v1', 'serverRelativeURL')
  t.match(url, /^\/openapi\/v3\/api\/v1\?hash=/)
  t.equal((await reader.get(`${url}&timeout=32s`)).status, 200)
  await cloud.unplug()
  await hub.offline()
  for (const query of ['', '?hash=A', '?hash=B', '?timeout=1s'])
    t.equal((await reader.get(`/openapi/v3/api/v1${query}`)).status, 200, query)
})
