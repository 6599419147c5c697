import t, { type Test as Tap } from 'tap'
import { join } from 'node:path'
import { pods, podsOfNode, startCloud, type CloudServer } from '../kit/cloud.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { Disk, disk } from './disk.ts'

const made = disk(t.testdir())

interface Slow {
  readonly cloud: CloudServer
  readonly hub: ChildHub
  readonly under: Disk
}

async function startSlow(t: Tap, library: string): Promise<Slow> {
  const folder = t.testdir()
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b', 'c')
  const under = new Disk(library, folder, join(folder, 'control'))
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

if ('reason' in made) t.pass('skipped', { skip: made.reason })
else {
  const { library } = made

  void t.test('while the disk syncs, all who do not wait for it are answered', async (t) => {
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
    while (!held()) await kubelet.get(one)
    for (let i = 0; i < 50; i++) {
      t.equal((await kubelet.get(one)).status, 200)
      t.equal((await hub.as('operator').get('/api/v1/pods')).status, 200)
    }
    t.ok(held(), 'all in the time of one sync')
    t.notOk(came, 'and the deletion waits for it')
    under.holdSyncs(false)
    t.equal((await event)?.type, 'DELETED')
  })

  void t.test(
    'the thread that answers requests writes nothing and waits for no disk',
    async (t) => {
      const { cloud, hub, under } = await startSlow(t, library)
      under.delaySyncs(1)
      const kubelet = hub.as('kubelet')
      await kubelet.list(podsOfNode)
      const [byMain, syncs] = [under.count('byMain'), under.count('syncsEnded')]
      for (let i = 0; i < 5; i++) {
        const { resourceVersion } = await kubelet.list(podsOfNode)
        const watch = await kubelet.watch(podsOfNode, { resourceVersion })
        cloud.addPods(`new-${i}`)
        t.equal((await watch.next())?.type, 'ADDED')
        cloud.sandbox.delete(pods, `new-${i}`, 'default', { gracePeriodSeconds: 0 })
        t.equal((await watch.next())?.type, 'DELETED')
        watch.hangUp()
        await kubelet.get('/api/v1/namespaces/default/pods/b')
      }
      t.ok(under.count('syncsEnded') >= syncs + 5)
      t.equal(under.count('byMain'), byMain)
    },
  )
}
