import t from 'tap'
import { at, withInitialEvents } from '../kit/client.ts'
import { pods, podsOfNode } from '../kit/cloud.ts'
import { onlineNode, goOffline } from '../kit/hub.ts'

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`watches while the cloud is gone: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b')
    const kubelet = hub.as('kubelet', { encoding })
    const { resourceVersion } = await kubelet.list(podsOfNode)
    await goOffline(cloud, hub)

    await t.test('from the version of the list it is silent to its end', async (t) => {
      const watch = await kubelet.watch(podsOfNode, { resourceVersion, timeoutSeconds: '1' })
      t.equal(watch.status, 200)
      t.strictSame(await watch.rest(), [])
      t.equal(await watch.over, 'ended')
    })

    await t.test('from no version, or from any, it begins with the stored objects', async (t) => {
      for (const version of [{}, { resourceVersion: '0' }]) {
        for (const bookmarks of [{}, { allowWatchBookmarks: 'true' }]) {
          const query = { ...version, ...bookmarks, timeoutSeconds: '1' }
          const events = await (await kubelet.watch(podsOfNode, query)).rest()
          const [first, second, bookmark, ...rest] = events
          t.strictSame(
            [first, second].map((event) => [event?.type, at(event?.object, 'metadata', 'name')]),
            [
              ['ADDED', 'a'],
              ['ADDED', 'b'],
            ],
            JSON.stringify(query),
          )
          t.strictSame(rest, [])
          t.equal(bookmark?.type, bookmarks.allowWatchBookmarks && 'BOOKMARK')
          const metadata = bookmark?.object['metadata']
          const expected = {
            resourceVersion,
            annotations: { 'k8s.io/initial-events-end': 'true' },
          }
          if (bookmark) t.match(metadata, expected)
        }
      }
    })

    await t.test(
      'with sendInitialEvents it gives them, and the bookmark at their end',
      async (t) => {
        for (const version of [{}, { resourceVersion: '0' }, { resourceVersion }]) {
          const watch = await kubelet.watch(podsOfNode, { ...withInitialEvents, ...version })
          const events = await watch.take(3)
          t.strictSame(
            events.map(({ type }) => type),
            ['ADDED', 'ADDED', 'BOOKMARK'],
          )
          t.match(events[2]?.object, {
            kind: 'Pod',
            apiVersion: 'v1',
            metadata: {
              resourceVersion,
              annotations: { 'k8s.io/initial-events-end': 'true' },
            },
          })
          watch.hangUp()
        }
      },
    )

    await t.test('from an older version it gets 410 in the stream', async (t) => {
      const version = String(Number(resourceVersion) - 1)
      const watch = await kubelet.watch(podsOfNode, { resourceVersion: version })
      t.equal(watch.status, 200)
      const [error, ...rest] = await watch.rest()
      const message = `too old resource version: ${version} (${resourceVersion})`
      t.match(error, { type: 'ERROR', object: { code: 410, reason: 'Expired', message } })
      t.strictSame(rest, [])
      t.equal(await watch.over, 'ended')
    })

    await t.test('from a newer version it is silent to its end', async (t) => {
      const version = String(Number(resourceVersion) + 1)
      const watch = await kubelet.watch(podsOfNode, {
        resourceVersion: version,
        allowWatchBookmarks: 'true',
        timeoutSeconds: '3',
      })
      t.equal(watch.status, 200)
      t.strictSame(await watch.rest(), [], 'it is shown nothing older')
      t.equal(await watch.over, 'ended')
    })

    await t.test('initial events no older than a future version are refused before', async (t) => {
      const watch = await kubelet.watch(podsOfNode, {
        ...withInitialEvents,
        resourceVersion: String(Number(resourceVersion) + 1),
      })
      t.equal(watch.status, 504)
    })
  })
}

void t.test('a WatchList kept online is a list and a WatchList offline', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  const kubelet = hub.as('kubelet', { encoding: 'protobuf' })
  const online = await kubelet.watch(podsOfNode, withInitialEvents)
  const initial = await online.take(3)
  cloud.addPods('c')
  const later = await online.next()
  await goOffline(cloud, hub)
  const list = await kubelet.list(podsOfNode)
  t.strictSame(list.names, ['default/a', 'default/b', 'default/c'])
  t.equal(list.resourceVersion, at(later?.object, 'metadata', 'resourceVersion'))
  const offline = await kubelet.watch(podsOfNode, withInitialEvents)
  const frames = (await offline.take(3)).map(({ frame }) => frame)
  t.strictSame(frames, [initial[0]?.frame, initial[1]?.frame, later?.frame])
})

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`an object missing from a WatchList is gone at its end: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b', 'c')
    const kubelet = hub.as('kubelet', { encoding })
    const first = await kubelet.watch(podsOfNode, withInitialEvents)
    await first.take(4)
    first.hangUp()
    await cloud.sandbox.untilWatches(0)
    cloud.sandbox.delete(pods, 'b', 'default', { gracePeriodSeconds: 0 })
    const second = await kubelet.watch(podsOfNode, withInitialEvents)
    const [, , end] = await second.take(3)
    await goOffline(cloud, hub)
    const { names, resourceVersion } = await kubelet.list(podsOfNode)
    t.strictSame(names, ['default/a', 'default/c'])
    t.equal(resourceVersion, at(end?.object, 'metadata', 'resourceVersion'))
    const { status } = await kubelet.get('/api/v1/namespaces/default/pods/b')
    t.equal(status, 503, 'by this selector it may only match no longer')
  })
}

void t.test('an event is kept for gets and lists, a deletion too', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a', 'b')
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list('/api/v1/pods')
  await kubelet.get('/api/v1/namespaces/default/pods/a')
  const watch = await kubelet.watch('/api/v1/pods', { resourceVersion })
  const { sandbox } = cloud
  sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
  t.equal((await watch.next())?.type, 'DELETED')
  await goOffline(cloud, hub)
  t.strictSame((await kubelet.list('/api/v1/pods')).names, ['default/b'])
  t.equal((await kubelet.get('/api/v1/namespaces/default/pods/a')).status, 404)
})

void t.test(
  'a watch from beyond what is kept is followed from what is kept, without a gap',
  async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a')
    const kubelet = hub.as('kubelet')
    await kubelet.list(podsOfNode)
    cloud.addPods('b')
    const beyond = await kubelet.watch(podsOfNode, { resourceVersion: cloud.sandbox.version })
    cloud.addPods('c')
    t.match(await beyond.next(), { object: { metadata: { name: 'c' } } }, 'and not of b again')
    await goOffline(cloud, hub)
    const after = await kubelet.list(podsOfNode)
    t.strictSame(after.names, ['default/a', 'default/b', 'default/c'])
  },
)
