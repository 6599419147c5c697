import t from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { objectOf, type Answer } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'

const skip = process.getuid?.() === 0 ? false : 'only root is shown the records of components'

void t.test('kubectl finds discovery and schemas at a node where it never ran', async (t) => {
  const cloud = await startCloud(t)
  const given = new Map<string, Buffer>()
  for (const { url, accept } of onSiteDocuments) {
    const { status, body } = await cloud.as('kubectl', { accept }).get(url)
    // The sandbox serves two of the groups, and no schema in protobuf.
    if (status === 200 && !accept.includes('proto-openapi')) given.set(`${url} ${accept}`, body)
  }
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    config: { boot: { refreshMs: 60_000, condition: false, report: false } },
  })
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  await until('the documents to be recorded', async () => {
    const recorded = await hub.metric('nodehub_recorded_total{kind="document"}')
    return recorded >= given.size
  })
  await cloud.unplug()
  await hub.offline()
  t.equal(given.size, 10)
  for (const { url, accept } of onSiteDocuments) {
    const before = given.get(`${url} ${accept}`)
    if (!before) continue
    const { status, body } = await hub.as('kubectl', { accept }).get(url)
    t.equal(status, 200, `${url} ${accept}`)
    t.ok(body.equals(before), 'as the API server gave it')
  }
})

/** Without the hashes of the versions in which they are stored, which the whole has not. */
const resourcesIn = (answer: Answer): Json =>
  JSON.parse(
    JSON.stringify(objectOf(answer), (name, value: unknown) =>
      name === 'storageVersionHash' ? undefined : value,
    ),
  ) as Json

void t.test('a kubectl that asks for each group finds them in the whole', { skip }, async (t) => {
  const cloud = await startCloud(t)
  const paths = ['/api/v1', '/apis/apps/v1', '/apis/coordination.k8s.io/v1']
  const before = new Map<string, Json>()
  for (const path of paths) before.set(path, resourcesIn(await cloud.as('kubectl').get(path)))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  for (const path of ['/api', '/apis']) await hub.as('kubelet', { accept }).get(path)
  await cloud.unplug()
  await hub.offline()
  for (const path of paths) {
    const answer = await hub.as('kubectl').get(path)
    t.equal(answer.status, 200, path)
    t.match(answer.headers.age, /^[0-9]+$/)
    t.strictSame(resourcesIn(answer), before.get(path), path)
    t.equal((await hub.as('kubelet').get(path)).status, 503, 'a component is told what it was told')
  }
  for (const path of ['/apis/apps/v2', '/apis/absent.example/v1', '/apis/apps'])
    t.equal((await hub.as('kubectl').get(path)).status, 503, path)
})
