import t from 'tap'
import { constants } from 'node:os'
import { join } from 'node:path'
import { pods, podsOfNode, startCloud } from '../kit/cloud.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { goOnline, goOffline, rootFolder } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { FaultyDisk, disk } from './disk.ts'

const made = disk(rootFolder(t))
const { ENOSPC, EIO, EROFS } = constants.errno

const failures: Readonly<Record<string, (under: FaultyDisk, fails: boolean) => void>> = {
  'is full': (under, fails) => under.failWrites(fails ? ENOSPC : 0),
  'has become read-only': (under, fails) => under.failWrites(fails ? EROFS : 0),
  'cannot sync': (under, fails) => under.failSyncs(fails ? EIO : 0),
}

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made
  for (const [what, set] of Object.entries(failures)) {
    void t.test(
      `F3: a disk that ${what} is reported, nothing counts as stored, and all is later`,
      async (t) => {
        const folder = rootFolder(t)
        const cloud = await startCloud(t)
        cloud.addPods('a', 'b')
        using under = new FaultyDisk(library, folder, join(folder, 'control'))
        const env = { ...under.env, NODE_OPTIONS: '' }
        const hub = new ChildHub(folder, hubFlags(folder, { upstreams: [cloud] }), env)
        t.teardown(() => hub.crash())
        await hub.start()
        await hub.online()
        const kubelet = hub.as('kubelet')
        const ready = async (): Promise<number> => (await hub.ops.get('/readyz')).status
        const { resourceVersion } = await kubelet.list(podsOfNode)
        t.equal(await ready(), 200)

        set(under, true)
        const watch = await kubelet.watch(podsOfNode, { resourceVersion })
        cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
        t.strictSame(await watch.rest(), [], 'what is not stored is not sent')
        const next = await kubelet.watch(podsOfNode, { resourceVersion })
        t.equal((await next.next())?.type, 'ERROR', 'and its client has to list')
        const shown = ['default/b']
        const listed = await kubelet.list(podsOfNode)
        t.strictSame(listed.names, shown)
        const passed = await kubelet.watch(podsOfNode, { resourceVersion: listed.resourceVersion })
        cloud.touch(pods, 'b', 'default')
        t.equal((await passed.next())?.type, 'MODIFIED', 'then the API server says what follows')
        passed.hangUp()
        t.equal(await ready(), 503, 'and it is said')
        t.match(
          (await hub.ops.get('/metrics')).body.toString(),
          /^nodehub_store_failures_total [1-9]/m,
        )
        await goOffline(cloud, hub)
        t.equal((await kubelet.get(podsOfNode)).status, 503, 'what was not stored is not there')

        set(under, false)
        await goOnline(cloud, hub)
        t.strictSame((await kubelet.list(podsOfNode)).names, shown)
        t.equal(await ready(), 200)
        await hub.crash()
        await cloud.unplug()
        await hub.start()
        t.strictSame((await hub.as('kubelet').list(podsOfNode)).names, shown)
      },
    )
  }
}
