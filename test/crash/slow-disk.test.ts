import t, { type Test as Tap } from 'tap'
import { join } from 'node:path'
import { at, objectOf } from '../kit/client.ts'
import { pods, podsOfNode, serviceAccounts, startCloud, type CloudServer } from '../kit/cloud.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { rootFolder } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { FaultyDisk, disk } from './disk.ts'
import { until } from '../kit/until.ts'

const made = disk(rootFolder(t))

interface Slow {
  readonly cloud: CloudServer
  readonly hub: ChildHub
  readonly under: FaultyDisk
}

async function startSlow(t: Tap, library: string): Promise<Slow> {
  const folder = rootFolder(t)
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b', 'c')
  const under = new FaultyDisk(library, folder, join(folder, 'control'))
  const env = { ...under.env, NODE_OPTIONS: '' }
  const hub = new ChildHub(folder, hubFlags(folder, { upstreams: [cloud] }), env)
  t.teardown(async () => {
    await hub.crash()
    under[Symbol.dispose]()
  })
  await hub.start()
  await hub.online()
  return { cloud, hub, under }
}

/** A token that the cluster has signed: with its first use the cluster's keys are learned. */
async function signedToken(cloud: CloudServer, name: string): Promise<string> {
  cloud.sandbox.create(serviceAccounts, { metadata: { name, namespace: 'default' } })
  const issued = await cloud
    .as('kubelet')
    .send(`/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
      method: 'POST',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    })
  return at(objectOf(issued), 'status', 'token') as string
}

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made

  void t.test('while the disk syncs, requests that need no sync are answered', async (t) => {
    const { cloud, hub, under } = await startSlow(t, library)
    const kubelet = hub.as('kubelet')
    const { resourceVersion } = await kubelet.list(podsOfNode)
    const one = '/api/v1/namespaces/default/pods/b'
    await kubelet.get(one)
    const watch = await kubelet.watch(podsOfNode, { resourceVersion })
    under.holdSyncs(true)
    cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
    let came = false
    const event = watch.next()
    void event.then(() => (came = true))
    const held = (): boolean => under.count('syncsBegun') > under.count('syncsEnded')
    await until('a sync to be held', async () => {
      await kubelet.get(one)
      return held()
    })
    for (let i = 0; i < 50; i++) {
      t.equal((await kubelet.get(one)).status, 200)
      t.equal((await hub.as('operator').get('/api/v1/pods')).status, 200)
    }
    t.ok(held(), 'all in the time of one sync')
    t.notOk(came, 'and the deletion waits for it')
    under.holdSyncs(false)
    t.equal((await event)?.type, 'DELETED')
  })

  void t.test('a request with a new token is answered while the disk syncs', async (t) => {
    const { cloud, hub, under } = await startSlow(t, library)
    const token = await signedToken(cloud, 'reader')
    under.holdSyncs(true)
    const held = (): boolean => under.count('syncsBegun') > under.count('syncsEnded')
    const reader = hub.as('operator', { token })
    await until('a sync to be held', async () => {
      t.equal((await reader.get('/api/v1/pods')).status, 200)
      return held()
    })
    for (let i = 0; i < 12; i++) {
      const shown = cloud.sandbox.token(`caller-${i}`)
      t.equal((await hub.as('operator', { token: shown }).get('/api/v1/pods')).status, 200)
    }
    t.ok(held(), 'all in the time of one sync')
    under.holdSyncs(false)
    await hub.crash()
  })
}
