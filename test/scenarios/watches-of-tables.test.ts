import t from 'tap'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import { tableAccept } from '../kit/client.ts'
import { configMaps } from '../kit/cloud.ts'
import { onlineNode } from '../kit/hub.ts'

const path = '/api/v1/namespaces/default/configmaps'

const isWatch = (request: SeenRequest): boolean =>
  request.path === path && request.query.get('watch') === 'true'

void t.test('watches of Tables pass through, and end with the link', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  const kubectl = hub.as('kubectl', { accept: tableAccept })
  const { resourceVersion } = await kubectl.list(path)
  const direct = await cloud.as('kubectl', { accept: tableAccept }).watch(path, { resourceVersion })
  const watches = [
    await kubectl.watch(path, { resourceVersion }),
    await kubectl.watch(path, { resourceVersion }),
  ]
  t.equal(cloud.sandbox.watchCount(isWatch), 3)
  for (const name of ['a', 'b'])
    cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' }, data: {} })
  const expected = await direct.take(2)
  for (const watch of watches) t.strictSame(await watch.take(2), expected, 'byte by byte')
  await cloud.unplug()
  for (const watch of watches) await watch.end()
})
