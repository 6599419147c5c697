import t from 'tap'
import { createServer } from 'node:net'
import { startCloud, startTestHub, TestHub } from '../../kit/hub.ts'
import { podsOfNode } from '../../kit/cloud.ts'
import { portOf } from '../../kit/wire/listening.ts'

const heartbeat = { intervalMs: 40, timeoutMs: 200, failedRetry: 1, healthyThreshold: 1 }

void t.test(
  'at the start reads wait until an API server is known to be silent, and are answered from the cache',
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const first = await startTestHub(t, { upstreams: [cloud] })
    const { names, resourceVersion } = await first.as('kubelet').list(podsOfNode)
    await first.as('kubelet').get('/api/v1/nodes/edge-1')
    await first.stop()

    const silent = createServer((socket) => void socket.on('error', () => undefined))
    const url = `http://127.0.0.1:${await portOf(t, silent)}`
    const second = new TestHub(first.rootDir, { upstreams: [{ url }], config: { heartbeat } })
    t.teardown(() => second.stop())
    await second.start()
    const kubelet = second.as('kubelet')
    const list = await kubelet.list(`${podsOfNode}&limit=500&resourceVersion=0`)
    t.strictSame([list.names, list.resourceVersion], [names, resourceVersion])
    t.equal((await kubelet.get('/api/v1/nodes/edge-1?resourceVersion=0')).status, 200)
    const watch = await kubelet.watch(podsOfNode, { resourceVersion })
    t.equal(watch.status, 200)
    t.equal(second.hub.online(), false)
  },
)
