import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Json } from '../../src/api/kube/json.ts'
import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { objectOf } from '../kit/client.ts'
import { podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { goOffline, startCloud, startTestHub, type TestHub } from '../kit/hub.ts'
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
