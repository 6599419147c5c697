import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import { at, nameOf, objectOf } from '../kit/client.ts'
import { goOffline, startCloud, startTestHub } from '../kit/hub.ts'

const path = '/apis/node.k8s.io/v1/runtimeclasses'
const runtimeClasses = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' }

const runtimeClass = (name: string) => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name },
  handler: 'runc',
})

for (const encoding of ['json', 'protobuf'] as const satisfies readonly Encoding[]) {
  void t.test(
    `a watch that a kubelet resumes on a lost cache has it list again, and that is recorded: ${encoding}`,
    async (t) => {
      const cloud = await startCloud(t)
      cloud.sandbox.create(runtimeClasses, runtimeClass('before'))
      const hub = await startTestHub(t, { upstreams: [cloud] })
      await hub.online()
      const { resourceVersion } = await hub.as('kubelet', { encoding }).list(path)
      await hub.stop()
      rmSync(join(hub.config.rootDir, 'cache'), { recursive: true })
      await hub.start()
      await hub.online()
      const kubelet = hub.as('kubelet', { encoding })
      const bookmarks = { allowWatchBookmarks: 'true' }
      const lost = await kubelet.watch(path, { resourceVersion, ...bookmarks })
      t.match(await lost.rest(), [{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }])
      const again = await kubelet.list(path)
      const watch = await kubelet.watch(path, {
        resourceVersion: again.resourceVersion,
        ...bookmarks,
      })
      cloud.sandbox.create(runtimeClasses, runtimeClass('after'))
      const event = await watch.next()
      t.equal(event && nameOf(event.object), 'after', 'the watch goes on')
      await goOffline(cloud, hub)
      const items = at(objectOf(await kubelet.get(path)), 'items') as { metadata: unknown }[]
      t.match(items, [{ metadata: { name: 'after' } }, { metadata: { name: 'before' } }])
    },
  )
}
