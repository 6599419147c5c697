import t from 'tap'
import { goOnline, goOffline, startCloud, startTestHub } from '../kit/hub.ts'
import { podsOfNode } from '../kit/cloud.ts'

void t.test('a hub passes on the answers of the cloud, and repeats them offline', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  for (const encoding of ['json', 'protobuf'] as const) {
    const kubelet = hub.as('kubelet', { encoding })
    const online = await kubelet.list(podsOfNode)
    t.strictSame(online.names, ['default/a', 'default/b'])
    await goOffline(cloud, hub)
    const offline = await kubelet.list(podsOfNode)
    t.strictSame(offline.answer.body, online.answer.body)
    await goOnline(cloud, hub)
  }
})
