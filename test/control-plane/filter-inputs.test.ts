import t from 'tap'
import { nodeName } from '../kit/cloud.ts'
import { until } from '../kit/until.ts'
import { noControlPlane, nodeSubject, startControlPlane } from '../kit/control-plane.ts'
import { letNodesRead } from './host-network-pool.ts'

t.setTimeout(120_000)

const skip = noControlPlane() ?? false
const pool = '/apis/apps.openyurt.io/v1beta2/nodepools/hangzhou'
const configMaps = '/api/v1/namespaces/kube-system/configmaps'

void t.test('the printed RBAC lets a node read its pool and the ConfigMap', { skip }, async (t) => {
  const plane = await startControlPlane(t)
  const node = plane.client(nodeSubject(nodeName))
  t.teardown(() => node.close())
  const statusOf = async (path: string): Promise<number> => (await node.get(path)).status
  const read = [pool, `${configMaps}/yurt-hub-cfg`]
  for (const path of read) t.equal(await statusOf(path), 403, path)

  await letNodesRead(plane)
  // Authorizers hear of new roles a moment later; neither object is there.
  for (const path of read) await until(path, async () => (await statusOf(path)) === 404)
  t.equal(await statusOf(configMaps), 403)
  t.equal(await statusOf(`${configMaps}/another`), 403)
})
