import t from 'tap'
import { at, objectOf, type Client } from '../kit/client.ts'
import { csiNodes, nodeName, podsOfNode } from '../kit/cloud.ts'
import { onlineNode, goOffline, startCloud, startTestHub } from '../kit/hub.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
const csiPath = '/apis/storage.k8s.io/v1/csinodes'
const nodePath = `/api/v1/nodes/${nodeName}`
const signing = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

const node: JsonObject = { kind: 'Node', apiVersion: 'v1', metadata: { name: nodeName } }
const lease = (resourceVersion?: string): JsonObject => ({
  kind: 'Lease',
  apiVersion: 'coordination.k8s.io/v1',
  metadata: {
    name: nodeName,
    namespace: 'kube-node-lease',
    ...(resourceVersion !== undefined && { resourceVersion }),
  },
  spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 },
})
const csiNode: JsonObject = {
  kind: 'CSINode',
  apiVersion: 'storage.k8s.io/v1',
  metadata: { name: nodeName },
  spec: { drivers: [] },
}
const event: JsonObject = {
  kind: 'Event',
  apiVersion: 'v1',
  metadata: { name: 'a.1', namespace: 'default' },
  involvedObject: { kind: 'Pod', namespace: 'default', name: 'a' },
  reason: 'Started',
  type: 'Normal',
}
const strategic = { 'Content-Type': 'application/strategic-merge-patch+json' }

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`writes of a kubelet while the cloud is gone: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t)
    cloud.addPods('a')
    cloud.sandbox.create(csiNodes, { metadata: { name: nodeName }, spec: { drivers: [] } })
    const kubelet = hub.as('kubelet', { encoding })
    await kubelet.send(leases, { method: 'POST', body: lease() })
    const kept = await kubelet.get(`${leases}/${nodeName}`)
    await kubelet.get(nodePath)
    await kubelet.list(podsOfNode)
    await kubelet.get(`${csiPath}/${nodeName}`)
    await goOffline(cloud, hub)
    const send = (method: string, path: string, body?: JsonObject) =>
      kubelet.send(path, { method, ...(body && { body }) })
    const version = at(objectOf(kept), 'metadata', 'resourceVersion') as string

    await t.test('its existing Node gets 409', async (t) => {
      const answer = await send('POST', '/api/v1/nodes', node)
      t.match(objectOf(answer), {
        code: 409,
        reason: 'AlreadyExists',
        details: { name: nodeName, kind: 'nodes' },
      })
      t.match(objectOf(await kubelet.get(nodePath)), { metadata: { name: nodeName } })
    })

    await t.test('its lease is renewed, at the version it came with', async (t) => {
      const got = await kubelet.get(`${leases}/${nodeName}`)
      t.strictSame(got.body, kept.body)
      const put = await send('PUT', `${leases}/${nodeName}`, lease(version))
      t.equal(put.status, 200)
      t.match(objectOf(put), {
        kind: 'Lease',
        metadata: { name: nodeName, resourceVersion: version },
        spec: { holderIdentity: nodeName },
      })
      const post = await send('POST', leases, lease())
      t.equal(post.status, 201)
      t.match(objectOf(post), { kind: 'Lease', spec: { holderIdentity: nodeName } })
    })

    await t.test('leases of leader elections are refused', async (t) => {
      const elsewhere = leases.replace('kube-node-lease', 'kube-system')
      t.equal((await send('POST', elsewhere, lease())).status, 503)
      t.equal((await send('PUT', `${elsewhere}/scheduler`, lease('5'))).status, 503)
    })

    await t.test('events are taken', async (t) => {
      const posted = await send('POST', '/api/v1/namespaces/default/events', event)
      t.equal(posted.status, 201)
      t.match(objectOf(posted), { kind: 'Event', reason: 'Started' })
      // The recorder sends the whole event when it is told so of a series.
      const series = await kubelet.send('/api/v1/namespaces/default/events/a.1', {
        method: 'PATCH',
        headers: strategic,
        body: '{"count":2}',
      })
      t.match(objectOf(series), { code: 404, reason: 'NotFound' })
    })

    await t.test('a CSINode that the cloud has shown is confirmed', async (t) => {
      t.equal((await kubelet.get(`${csiPath}/${nodeName}`)).status, 200)
      t.match(objectOf(await send('POST', csiPath, csiNode)), {
        code: 409,
        reason: 'AlreadyExists',
      })
      const put = await send('PUT', `${csiPath}/${nodeName}`, csiNode)
      t.equal(put.status, 200)
      t.match(objectOf(put), { kind: 'CSINode', metadata: { name: nodeName } })
    })

    await t.test('a request that only the cloud can serve gets 503', async (t) => {
      const refused: [string, string][] = [
        ['DELETE', '/api/v1/namespaces/default/pods/a'],
        ['DELETE', '/api/v1/pods'],
        ['DELETE', nodePath],
        ['POST', signing],
        ['GET', `${signing}/csr-1`],
        ['GET', signing],
        ['GET', `${signing}?fieldSelector=metadata.name%3Dcsr-1&limit=500&resourceVersion=0`],
        ['GET', `${signing}?watch=true&resourceVersion=1`],
        ['POST', '/api/v1/namespaces/default/pods'],
        ['PUT', nodePath],
        ['PUT', '/api/v1/namespaces/default/pods/a/status'],
        ['PATCH', '/api/v1/namespaces/default/pods/a'],
        [
          'DELETE',
          `/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3D${nodeName}`,
        ],
        ['POST', '/api/v1/namespaces/default/pods/a/exec?command=ls'],
        ['POST', '/api/v1/namespaces/default/pods/a/eviction'],
        ['GET', `/api/v1/nodes/${nodeName}/proxy/metrics`],
      ]
      for (const [method, path] of refused) {
        const answer = await send(method, path, method === 'POST' ? node : undefined)
        t.equal(answer.status, 503, `${method} ${path}`)
        t.match(objectOf(answer), { kind: 'Status', reason: 'ServiceUnavailable' })
        if (!/\/(exec|proxy)\b/.test(path)) continue
        const { message } = objectOf(answer) as { message?: string }
        t.match(message, /and this cannot be done without it$/, 'all that a node does, in one word')
      }
      const log = await kubelet.get('/api/v1/namespaces/default/pods/a/log?container=main')
      t.match(objectOf(log), {
        code: 403,
        message: /only for callers with the kubelet's certificate/,
      })
    })
  })

  void t.test(
    `an object that the cloud has never shown is not confirmed: ${encoding}`,
    async (t) => {
      const { cloud, hub } = await onlineNode(t)
      const kubelet = hub.as('kubelet', { encoding })
      // Requested and not found: a kubelet that gets this offline ends itself.
      t.equal((await kubelet.get(`${csiPath}/${nodeName}`)).status, 404)
      await goOffline(cloud, hub)
      t.equal((await kubelet.get(`${csiPath}/${nodeName}`)).status, 503)
      const sent: [string, string, JsonObject][] = [
        ['POST', csiPath, csiNode],
        ['PUT', `${csiPath}/${nodeName}`, csiNode],
        ['POST', '/api/v1/nodes', node],
      ]
      for (const [method, path, body] of sent) {
        t.equal((await kubelet.send(path, { method, body })).status, 503, `${method} ${path}`)
      }
    },
  )
}

void t.test('a kubelet never gets 404 for its CSINode or lease', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const kubelet = hub.as('kubelet')
  // A client with the node's credentials has listed them, and there were none.
  t.strictSame((await kubelet.list(csiPath)).names, [])
  t.strictSame((await kubelet.list(leases)).names, [])
  await goOffline(cloud, hub)
  for (const path of [`${csiPath}/${nodeName}`, `${leases}/${nodeName}`]) {
    t.equal((await kubelet.get(path)).status, 503, path)
  }
})

void t.test('writes of callers other than the node are refused', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const bearer: Client = hub.as('kubelet', { token: cloud.sandbox.token('somebody') })
  await bearer.get(nodePath)
  await goOffline(cloud, hub)
  const sent: [string, string, JsonObject][] = [
    ['POST', '/api/v1/nodes', node],
    ['POST', leases, lease()],
    ['POST', '/api/v1/namespaces/default/events', event],
  ]
  for (const [method, path, body] of sent) {
    t.equal((await bearer.send(path, { method, body })).status, 503, path)
  }
})

void t.test('a body larger than an API server takes is refused', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  await goOffline(cloud, hub)
  const message = 'x'.repeat(4 * 1024 * 1024)
  const body = { ...event, message }
  const sent = hub.as('kubelet').send('/api/v1/namespaces/default/events', { method: 'POST', body })
  const answer = await sent.catch(() => undefined)
  t.ok(answer === undefined || answer.status === 413)
  t.equal((await hub.ops.get('/livez')).status, 200)
})

void t.test('a malformed write, or one of another node, is refused', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  await goOffline(cloud, hub)
  const kubelet = hub.as('kubelet')
  const code = async (method: string, url: string, body: string): Promise<number> =>
    (await kubelet.send(url, { method, body: Buffer.from(body) })).status
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const foreign =
    '{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"edge-2"}}'
  t.equal(await code('POST', '/api/v1/namespaces/default/events', '[1'), 400)
  t.equal(await code('PUT', `${leases}/edge-1`, '{bad'), 400)
  t.equal(await code('PUT', `${leases}/edge-2`, foreign), 503)
  t.equal(await code('PATCH', '/api/v1/nodes/edge-1/status', '{}'), 415)
})
