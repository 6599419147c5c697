import t from 'tap'
import {
  addCsiNode,
  kubeletOf,
  podWith,
  problemsIn,
  startUp,
  verdictOf,
  verdictUntil,
} from '../kit/bootable.ts'
import { objectOf } from '../kit/client.ts'
import { pods, podsOfNode, secrets } from '../kit/cloud.ts'
import { startCloud, startTestHub, type CloudServer } from '../kit/hub.ts'

const secretOf = (name: string): string =>
  `/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3D${name}`

/** A pod, and a Secret of its own. */
function addRun({ sandbox }: CloudServer, name: string): void {
  const data = { password: Buffer.alloc(30_000, name).toString('base64') }
  sandbox.create(secrets, { metadata: { name, namespace: 'default' }, data })
  sandbox.create(pods, podWith(name, { secret: { secretName: name } }))
}

void t.test('a node whose pods come and go, each with a Secret of its own, goes on', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    config: { cacheMaxBytes: 2 << 20, boot: { refreshMs: 500, condition: false } },
  })
  const kubelet = kubeletOf(hub)
  const resourceVersion = await startUp(kubelet)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  const staying = ['press', 'saw']
  for (const name of staying) {
    addRun(cloud, name)
    await watch.next()
    t.equal((await kubelet.get(secretOf(name))).status, 200)
  }
  // Twice what there is room for.
  for (let run = 0; run < 120; run++) {
    const name = `run-${run}`
    addRun(cloud, name)
    await watch.next()
    await kubelet.get(secretOf(name))
    cloud.sandbox.delete(pods, name, 'default', { gracePeriodSeconds: 0 })
    t.equal((await watch.next())?.type, 'DELETED')
  }
  addRun(cloud, 'latest')
  await watch.next()
  await kubelet.get(secretOf('latest'))
  t.ok((await hub.metric('nodehub_store_evicted_total{kind="gone"}')) > 50)
  t.equal(await hub.metric('nodehub_store_failures_total'), 0)
  t.equal((await hub.ops.get('/readyz')).status, 200)

  const present = [...staying, 'latest']
  // In a cache that is so small, what goes may be theirs: it is read again.
  await verdictUntil(
    hub,
    (found) => found.pods.length === present.length && problemsIn(found).length === 0,
  )
  await cloud.unplug()
  await hub.restart()
  await hub.offline()
  t.strictSame(problemsIn(await verdictOf(hub)), [])
  const rebooted = kubeletOf(hub)
  for (const name of present) {
    const answer = await rebooted.get(`${secretOf(name)}&resourceVersion=0`)
    t.equal(answer.status, 200)
    t.equal((objectOf(answer)['items'] as unknown[]).length, 1)
  }
  t.equal((await rebooted.get(secretOf('run-0'))).status, 503, 'unknown, and not empty')
})
