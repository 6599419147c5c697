import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Encoding } from '../../src/api/kube/media-type.ts'
import type { HubStatus } from '../../src/hub/wiring/status/document.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { at, nameOf, objectOf } from '../kit/client.ts'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'

const path = '/apis/node.k8s.io/v1/runtimeclasses'
const runtimeClasses = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' }

const runtimeClass = (name: string) => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name },
  handler: 'runc',
})

const isList = (request: SeenRequest): boolean =>
  request.path === path && request.query.get('watch') !== 'true'

for (const encoding of ['json', 'protobuf'] as const satisfies readonly Encoding[]) {
  void t.test(
    `a list whose watch a kubelet resumes on a lost cache is recorded again: ${encoding}`,
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
      const listed = cloud.sandbox.requests.filter(isList).length
      const kubelet = hub.as('kubelet', { encoding })
      const watches = [
        await kubelet.watch(path, { resourceVersion, allowWatchBookmarks: 'true' }),
        await kubelet.watch(path, { resourceVersion, allowWatchBookmarks: 'true' }),
      ]
      await until('the list to be recorded', async () => {
        const { body } = await hub.ops.get('/inspect/status')
        const { collections } = JSON.parse(body.toString()) as HubStatus
        return collections?.items.some(({ resource }) => resource.includes('runtimeclasses'))
      })
      cloud.sandbox.create(runtimeClasses, runtimeClass('after'))
      for (const watch of watches) {
        const event = await watch.next()
        t.equal(event && nameOf(event.object), 'after', 'the watch goes on')
      }
      t.equal(cloud.sandbox.requests.filter(isList).length, listed + 1, 'it is listed once')
      await cloud.unplug()
      await hub.offline()
      const items = at(objectOf(await kubelet.get(path)), 'items') as { metadata: unknown }[]
      t.match(items, [{ metadata: { name: 'after' } }, { metadata: { name: 'before' } }])
    },
  )
}
