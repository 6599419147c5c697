import { createServer, request } from 'node:http'
import t from 'tap'
import { pod, pods, podsOfNode } from '../kit/cloud.ts'
import { startOnlineHub, goOffline, startCloud, type CloudServer } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { portOf } from '../kit/wire/listening.ts'

const parameter = 'shardSelector=first'
const firstPods = `${podsOfNode}&${parameter}`

/** An API server that knows a parameter more than the hub: the first shard is the pod `a`. */
async function shardingServer(t: Teardown, cloud: CloudServer): Promise<{ url: string }> {
  const server = createServer((asked, answer) => {
    const path = asked.url?.replace(parameter, 'labelSelector=app%3Da')
    const { method, headers } = asked
    const onward = request(`${cloud.url}${path}`, { method, headers, agent: false }, (reply) => {
      answer.writeHead(reply.statusCode ?? 0, reply.headers)
      answer.flushHeaders()
      reply.on('error', () => answer.destroy()).pipe(answer)
    })
    answer.on('close', () => onward.destroy())
    onward.on('error', () => answer.destroy())
    asked.pipe(onward)
  })
  return { url: `http://127.0.0.1:${await portOf(t, server)}` }
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a parameter that the hub does not know passes unrecorded: ${encoding}`,
    async (t) => {
      const cloud = await startCloud(t)
      cloud.addPods('a', 'b')
      const hub = await startOnlineHub(t, { upstreams: [await shardingServer(t, cloud)] })
      const kubelet = hub.as('kubelet', { encoding })
      const whole = await kubelet.list(podsOfNode)
      t.strictSame(whole.names, ['default/a', 'default/b'])
      const { resourceVersion } = whole
      const all = await kubelet.watch(podsOfNode, { resourceVersion })
      const [shard, ofAnyAge] = [firstPods, `${firstPods}&resourceVersion=0`]
      for (const path of [shard, ofAnyAge])
        t.strictSame((await kubelet.list(path)).names, ['default/a'], path)
      t.equal((await kubelet.get(`/api/v1/namespaces/default/pods/b?${parameter}`)).status, 200)
      const some = await kubelet.watch(firstPods, { resourceVersion })
      cloud.sandbox.create(pods, pod('c'))
      cloud.touch(pods, 'a', 'default')
      t.match((await all.next())?.object, { metadata: { name: 'c' } })
      t.match((await some.next())?.object, { metadata: { name: 'a' } }, 'no event of other shards')
      t.match((await all.next())?.object, { metadata: { name: 'a' } })
      all.hangUp()
      some.hangUp()
      await goOffline(cloud, hub)
      t.equal((await kubelet.get('/api/v1/namespaces/default/pods/b')).status, 200)
      t.strictSame((await kubelet.list(podsOfNode)).names, ['default/a', 'default/b', 'default/c'])
      for (const path of [
        shard,
        ofAnyAge,
        `/api/v1/namespaces/default/pods/a?${parameter}`,
        `/api/v1/namespaces/default/pods/none?${parameter}`,
      ])
        t.equal((await kubelet.get(path)).status, 503, path)
      const watch = await kubelet.watch(firstPods, { resourceVersion })
      t.equal(watch.status, 503)
      watch.hangUp()
    },
  )
}

void t.test('nor do the records for a person answer it, nor the hub a write', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startOnlineHub(t, { upstreams: [await shardingServer(t, cloud)] })
  await hub.as('kubelet').list(podsOfNode)
  const kubectl = hub.as('kubectl')
  const all = '/api/v1/namespaces/default/pods'
  t.strictSame((await kubectl.list(`${all}?${parameter}`)).names, ['default/a'])
  t.strictSame((await kubectl.list(all)).names, ['default/a', 'default/b'])
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1'
  await goOffline(cloud, hub)
  t.equal((await kubectl.get(`${all}?${parameter}`)).status, 503)
  const body = {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: { name: 'edge-1' },
  }
  const write = { method: 'PUT', body }
  t.equal((await hub.as('kubelet').send(lease, write)).status, 200)
  t.equal((await hub.as('kubelet').send(`${lease}?fieldManager=kubelet`, write)).status, 200)
  t.equal((await hub.as('kubelet').send(`${lease}?${parameter}`, write)).status, 503)
})
