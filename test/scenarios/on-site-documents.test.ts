import t from 'tap'
import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'

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
    config: { boot: { refreshMs: 60_000, condition: false } },
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
