import t from 'tap'
import { join } from 'node:path'
import { noDisk, smallDisk } from '../kit/disk.ts'
import { startOnlineHub, startCloud } from '../kit/hub.ts'
import { until } from '../kit/until.ts'

const pod = '/api/v1/namespaces/default/pods/a'

void t.test(
  'a node that starts without a link, on a disk that takes no writes, serves its pods',
  { skip: noDisk() },
  async (t) => {
    const cloud = await startCloud(t)
    cloud.addPods('a')
    const disk = smallDisk(t, 16)
    const rootDir = join(disk.path, 'state')
    const config = { rootDir, cachePath: join(rootDir, 'cache') }
    const hub = await startOnlineHub(t, { upstreams: [cloud], config })
    const kubelet = hub.as('kubelet')
    t.equal((await kubelet.get(pod)).status, 200)
    await hub.stop()
    await cloud.unplug()
    disk.readOnly()
    await hub.start()
    await hub.offline()
    t.equal((await hub.as('kubelet').get(pod)).status, 200)
    const unready = await hub.ops.get('/readyz')
    t.equal(unready.status, 503)
    t.match(unready.body.toString(), /store/)
    disk.writable()
    await until('the hub to be ready', async () => (await hub.ops.get('/readyz')).status === 200)
    t.equal((await hub.as('kubelet').get(pod)).status, 200)
  },
)
