import t, { type Test } from 'tap'
import type { Client } from '../kit/client.ts'
import { podsOfNode, services } from '../kit/cloud.ts'
import { startCloud, startTestHub, type TestHub } from '../kit/hub.ts'
import { damageBodies } from '../kit/log-on-disk.ts'
import { until } from '../kit/until.ts'

const allServices = '/api/v1/services'

/**
 * A hub that has recorded pods and services, started again without a cloud after one of each was
 * damaged on the disk.
 */
async function damaged(t: Test, encoding: 'json' | 'protobuf'): Promise<TestHub> {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b')
  for (const name of ['a', 'b']) {
    cloud.sandbox.create(services, {
      metadata: { name, namespace: 'default' },
      spec: { clusterIP: 'None' },
    })
  }
  const hub = await startTestHub(t, { upstreams: [cloud], flags: ['--pool-scope-resources='] })
  const kubelet = hub.as('kubelet', { encoding })
  await kubelet.list(podsOfNode)
  await kubelet.list(allServices)
  const { cachePath } = hub.config
  await hub.stop()
  await cloud.unplug()
  damageBodies(cachePath, 'b')
  await hub.start()
  return hub
}

/**
 * Of the first answer that is whole. Where the damage is found while an answer is on its way, that
 * breaks off, and so may the next ones until the store has it written down.
 */
async function firstStatus(client: Client, path: string): Promise<number> {
  return until(`a whole answer to ${path}`, async () => (await client.get(path)).status)
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a kubelet is never shown its pods without a damaged one: ${encoding}`, async (t) => {
    const hub = await damaged(t, encoding)
    const kubelet = hub.as('kubelet', { encoding })
    t.equal(await firstStatus(kubelet, podsOfNode), 503)
    const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
    t.equal((await kubelet.get(`${podsOfNode}&${query}`)).status, 503)
    t.equal(await hub.metric('nodehub_store_damaged_total'), 1)
    await hub.restart()
    const again = hub.as('kubelet', { encoding })
    t.equal((await again.get(podsOfNode)).status, 503, 'nor after another start')
  })

  void t.test(`other lists are not given without a damaged object: ${encoding}`, async (t) => {
    const hub = await damaged(t, encoding)
    t.equal(await firstStatus(hub.as('kubelet', { encoding }), allServices), 503)
  })
}
