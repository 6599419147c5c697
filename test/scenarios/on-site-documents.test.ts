import t from 'tap'
import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { objectOf } from '../kit/client.ts'
import { podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { goOffline, startCloud, startTestHub } from '../kit/hub.ts'
import { defineRbacKinds } from '../kit/policy-kinds.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { until } from '../kit/until.ts'

const refreshing = (refreshMs: number) => ({
  boot: { refreshMs, condition: false },
})

/** The paths of the schemas in the API server's index. */
async function schemaPaths(cloud: CloudServer): Promise<string[]> {
  const { paths } = objectOf(await cloud.as('kubectl').get('/openapi/v3')) as {
    paths: Record<string, { serverRelativeURL: string }>
  }
  return Object.values(paths).map(({ serverRelativeURL }) => serverRelativeURL)
}

void t.test('kubectl finds discovery and all schemas at a node where it never ran', async (t) => {
  const cloud = await startCloud(t)
  defineRbacKinds(cloud.sandbox)
  const given = new Map<string, Buffer>()
  const schemas = await schemaPaths(cloud)
  t.ok(schemas.some((path) => path.includes('/apis/rbac.authorization.k8s.io/v1?hash=')))
  const documents = [
    ...onSiteDocuments,
    ...schemas.map((url) => ({ url, accept: 'application/json' })),
  ]
  for (const { url, accept } of documents) {
    const { status, body } = await cloud.as('kubectl', { accept }).get(url)
    // The sandbox serves some of the groups, and no schema in protobuf.
    if (status === 200 && !accept.includes('proto-openapi')) given.set(`${url} ${accept}`, body)
  }
  const hub = await startTestHub(t, { upstreams: [cloud], config: refreshing(1_000) })
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  await until('the documents to be recorded', async () => {
    const recorded = await hub.metric('nodehub_recorded_total{kind="document"}')
    return recorded >= given.size
  })
  await goOffline(cloud, hub)
  for (const { url, accept } of documents) {
    const before = given.get(`${url} ${accept}`)
    if (!before) continue
    const { status, body } = await hub.as('kubectl', { accept }).get(url)
    t.equal(status, 200, `${url} ${accept}`)
    t.ok(body.equals(before), 'as the API server gave it')
  }
})

void t.test('the schema of a new group is read, and no other again', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud], config: refreshing(100) })
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  const isInJson = (seen: SeenRequest): boolean =>
    seen.path.startsWith('/openapi/v3/') && seen.headers['accept'] === 'application/json'
  const inJson = (): string[] => cloud.sandbox.requests.filter(isInJson).map(({ path }) => path)
  // As kubectl reads them, without the hub.
  const { length } = await schemaPaths(cloud)
  const isInProtobuf = (path: string | undefined): boolean =>
    cloud.sandbox.requests.some((seen) => seen.path === path && !isInJson(seen))
  // In JSON one is recorded once the next request is made.
  await until('the schemas to be read', () => isInProtobuf(inJson()[length - 1]))
  t.equal(new Set(inJson()).size, length, 'each once')
  await hub.restart()
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  defineRbacKinds(cloud.sandbox)
  const added = '/openapi/v3/apis/rbac.authorization.k8s.io/v1'
  await until('the new one to be read', () => inJson().includes(added))
  t.strictSame(inJson().slice(length), [added])
  await until('it in protobuf to be requested', () => isInProtobuf(added))
  await goOffline(cloud, hub)
  t.equal((await hub.as('kubectl').get(`${added}?hash=of-another-version`)).status, 200)
})
