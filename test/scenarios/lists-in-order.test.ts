import t from 'tap'
import { at, objectOf, type Client } from '../kit/client.ts'
import { pod, pods, podsOfNode } from '../kit/cloud.ts'
import { onlineNode, goOffline, type CloudServer } from '../kit/hub.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'

const ofAnyAge = `${podsOfNode}&resourceVersion=0`
const aPod = '/api/v1/namespaces/default/pods/a'

/** Answers that are long: lists and watches. Those of one object, and probes, pass. */
const isLong = ({ path }: SeenRequest): boolean => /\/(?:pods|services)$/.test(path)

function change(cloud: CloudServer, name = 'a'): void {
  cloud.sandbox.update(pods, { ...cloud.sandbox.get(pods, name, 'default'), ...relabelled(name) })
}

const relabelled = (name: string) => {
  const { metadata, ...rest } = pod(name) as { metadata: object }
  return { ...rest, metadata: { ...metadata, labels: { changed: 'true' } } }
}

const versionOf = async (client: Client, path: string): Promise<unknown> =>
  at(objectOf(await client.get(path)), 'metadata', 'resourceVersion')

async function listed(client: Client, path: string): Promise<readonly unknown[]> {
  const { names, resourceVersion } = await client.list(path)
  return [names, resourceVersion]
}

void t.test('a list of any age that breaks off is answered from its caller’s own', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const token = cloud.sandbox.token('system:serviceaccount:default:reader')
  const reader = hub.as('kube-proxy', { token })
  const { names } = await reader.list(ofAnyAge)
  change(cloud)
  await hub.as('kubelet').get(aPod)
  using _cut = cloud.sandbox.faults.cut(30, isLong)
  t.strictSame((await reader.list(ofAnyAge)).names, names)
})

void t.test(
  'without the cloud a list is what the cloud last gave whole, and a get the newest of its object',
  async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b')
    const before = await listed(hub.as('kubelet'), ofAnyAge)
    change(cloud)
    const shown = await versionOf(hub.as('kubelet'), aPod)
    await goOffline(cloud, hub)
    for (const when of ['at once', 'after a restart']) {
      const kubelet = hub.as('kubelet')
      t.strictSame(await listed(kubelet, ofAnyAge), before, when)
      t.strictSame(await listed(kubelet, podsOfNode), before, when)
      t.equal(await versionOf(kubelet, aPod), shown, when)
      await hub.restart()
    }
  },
)
