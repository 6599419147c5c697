import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { objectOf } from '../kit/client.ts'
import { nodeName } from '../kit/cloud.ts'
import { onlineNode, goOffline } from '../kit/hub.ts'

const csiNodes = '/apis/storage.k8s.io/v1/csinodes'
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'

const made: readonly { readonly path: string; readonly object: JsonObject }[] = [
  {
    path: csiNodes,
    object: {
      kind: 'CSINode',
      apiVersion: 'storage.k8s.io/v1',
      metadata: { name: nodeName },
      spec: { drivers: [] },
    },
  },
  {
    path: leases,
    object: {
      kind: 'Lease',
      apiVersion: 'coordination.k8s.io/v1',
      metadata: { name: nodeName, namespace: 'kube-node-lease' },
      spec: { holderIdentity: nodeName },
    },
  },
]

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `F18: an object that a kubelet made, and never read, is there offline: ${encoding}`,
    async (t) => {
      const { cloud, hub } = await onlineNode(t)
      const kubelet = hub.as('kubelet', { encoding })
      const versions = []
      for (const { path, object } of made) {
        t.equal((await kubelet.get(`${path}/${nodeName}`)).status, 404)
        const answer = await kubelet.send(path, { method: 'POST', body: object })
        t.equal(answer.status, 201)
        versions.push(objectOf(answer))
      }
      await goOffline(cloud, hub)
      await hub.restart()
      for (const [at, { path }] of made.entries()) {
        const answer = await kubelet.withOptions({ url: hub.url }).get(`${path}/${nodeName}`)
        t.equal(answer.status, 200)
        t.strictSame(objectOf(answer), versions[at])
      }
    },
  )
}

void t.test('a dry-run write is not kept, nor an object that no kubelet needs again', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const kubelet = hub.as('kubelet')
  const [csiNode] = made
  const tried = await kubelet.send(`${csiNodes}?dryRun=All`, {
    method: 'POST',
    ...(csiNode && { body: csiNode.object }),
  })
  t.equal(tried.status, 201)
  const configMaps = '/api/v1/namespaces/default/configmaps'
  const configMap = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } }
  t.equal((await kubelet.send(configMaps, { method: 'POST', body: configMap })).status, 201)
  await goOffline(cloud, hub)
  t.equal((await kubelet.get(`${csiNodes}/${nodeName}`)).status, 503)
  t.equal((await kubelet.get(`${configMaps}/a`)).status, 503)
})
