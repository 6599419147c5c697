import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { objectOf, type Answer } from '../kit/client.ts'
import { podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { goOffline, startCloud, startTestHub, type TestHub } from '../kit/hub.ts'
import { defineRbacKinds } from '../kit/policy-kinds.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { until } from '../kit/until.ts'

const skip = process.getuid?.() === 0 ? false : 'only root is shown the records of components'

const refreshing = (refreshMs: number) => ({
  boot: { refreshMs, condition: false, report: false },
})

/** The paths of the schemas in the API server's index. */
async function schemaPaths(cloud: CloudServer): Promise<string[]> {
  const { paths } = objectOf(await cloud.as('kubectl').get('/openapi/v3')) as {
    paths: Record<string, { serverRelativeURL: string }>
  }
  return Object.values(paths).map(({ serverRelativeURL }) => serverRelativeURL)
}

/** How many are recorded. */
function recordedSchemas({ config: { rootDir } }: TestHub): number {
  const file = join(rootDir, 'schemas.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Json[]).length : 0
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
    return recorded >= given.size && recordedSchemas(hub) === schemas.length
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

void t.test('a schema is read again when it has changed, and not before', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud], config: refreshing(100) })
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  const before = await schemaPaths(cloud)
  await until('the schemas to be recorded', () => recordedSchemas(hub) === before.length)
  const isInJson = (seen: SeenRequest): boolean =>
    seen.path.startsWith('/openapi/v3/') && seen.headers['accept'] === 'application/json'
  const inJson = (): string[] => cloud.sandbox.requests.filter(isInJson).map(({ path }) => path)
  t.equal(inJson().length, before.length, 'each once')
  await hub.restart()
  await hub.as('kubelet', { encoding: 'protobuf' }).list(podsOfNode)
  defineRbacKinds(cloud.sandbox)
  await until('the new one to be recorded', () => recordedSchemas(hub) === before.length + 1)
  t.strictSame(inJson().slice(before.length), ['/openapi/v3/apis/rbac.authorization.k8s.io/v1'])
  await goOffline(cloud, hub)
  const known = '/openapi/v3/apis/rbac.authorization.k8s.io/v1'
  t.equal((await hub.as('kubectl').get(`${known}?hash=of-another-version`)).status, 200)
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
    t.equal(
      (await hub.as('kubelet').get(path)).status,
      503,
      'a component gets only its own records',
    )
  }
  for (const path of ['/apis/apps/v2', '/apis/absent.example/v1', '/apis/apps'])
    t.equal((await hub.as('kubectl').get(path)).status, 503, path)
})
