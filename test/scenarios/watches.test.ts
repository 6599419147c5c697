import t from 'tap'
import { at, howItEnds, nameOf } from '../kit/client.ts'
import { configMaps, pods, podsOfNode } from '../kit/cloud.ts'
import { startOnlineHub, onlineNode, startCloud } from '../kit/hub.ts'

for (const component of ['kubelet', 'operator']) {
  for (const encoding of ['json', 'protobuf'] as const) {
    void t.test(
      `each event of ${component}'s watch comes before the next is made: ${encoding}`,
      async (t) => {
        const { cloud, hub } = await onlineNode(t, 'a')
        const client = hub.as(component, { encoding })
        const { resourceVersion } = await client.list(podsOfNode)
        // The head comes before there is anything to say.
        const watch = await client.watch(podsOfNode, { resourceVersion })
        t.equal(watch.status, 200)
        for (let i = 0; i < 20; i++) {
          cloud.touch(pods, 'a', 'default')
          const event = await watch.next()
          t.equal(at(event?.object, 'metadata', 'resourceVersion'), cloud.sandbox.version)
        }
      },
    )

    void t.test(
      `${component}'s watch is what the cloud's is, byte for byte: ${encoding}`,
      async (t) => {
        const cloud = await startCloud(t, { bookmarkMs: 3_600_000 })
        cloud.addPods('a')
        const hub = await startOnlineHub(t, { upstreams: [cloud] })
        const client = hub.as(component, { encoding })
        const { resourceVersion } = await client.list(podsOfNode)
        const query = { resourceVersion, allowWatchBookmarks: 'true', timeoutSeconds: '1' }
        const through = await client.watch(podsOfNode, query)
        const direct = await cloud.as(component, { encoding }).watch(podsOfNode, query)
        cloud.addPods('b')
        cloud.touch(pods, 'b', 'default')
        cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
        // Its deadline ends it.
        const [said, heard] = [await direct.rest(), await through.rest()]
        t.strictSame(
          heard.map(({ frame }) => frame),
          said.map(({ frame }) => frame),
        )
        t.strictSame(
          said.map(({ type }) => type).filter((type) => type !== 'BOOKMARK'),
          ['ADDED', 'MODIFIED', 'DELETED'],
        )
        t.equal(await through.over, 'ended')
      },
    )
  }
}

for (const [protocol, tls] of [
  ['HTTP/1.1', false],
  ['HTTP/2', true],
] as const) {
  void t.test(
    `F10: a client that stops reading its watch holds up no other, and lists again: ${protocol}`,
    async (t) => {
      const cloud = await startCloud(t, { tls, watchQueueBytes: 64 * 1024 ** 2 })
      const config = { memoryLimitBytes: 512 * 1024 ** 2 }
      const hub = await startOnlineHub(t, { upstreams: [cloud], config })
      const path = '/api/v1/namespaces/default/configmaps'
      const [kubelet, operator] = [
        hub.as('kubelet'),
        hub.as('operator', { token: cloud.sandbox.token('operator') }),
      ]
      const { resourceVersion } = await kubelet.list(path)
      const stuck = await kubelet.watch(path, { resourceVersion })
      const others = [
        await kubelet.watch(path, { resourceVersion }),
        await operator.watch(path, { resourceVersion }),
      ]
      // More than the sockets hold, on either side of the hub, and what a connection of HTTP/2 lets
      // be under way.
      const data = { filling: 'x'.repeat(500_000) }
      const names: string[] = []
      for (let i = 0; i < 60; i++) {
        names.push(`default/c-${i}`)
        cloud.sandbox.create(configMaps, {
          metadata: { name: `c-${i}`, namespace: 'default' },
          data,
        })
        for (const watch of others) {
          const event = await watch.next()
          t.equal(event && nameOf(event.object), names.at(-1))
        }
      }
      const late = await stuck.rest()
      const version = at(late.at(-1)?.object, 'metadata', 'resourceVersion') as string
      t.strictSame(
        late.map(({ object }) => nameOf(object)),
        names.slice(0, late.length),
        'it is not lied to',
      )
      const [error] = await (await kubelet.watch(path, { resourceVersion: version })).rest()
      t.match(error, { type: 'ERROR', object: { code: 410 } }, 'the log has no more of it')
      t.strictSame((await kubelet.list(path)).names.toSorted(), names.toSorted())
    },
  )
}

void t.test('a watch whose client hangs up is over in the cloud too', async (t) => {
  const { cloud, hub } = await onlineNode(t)
  for (const component of ['kubelet', 'operator']) {
    const client = hub.as(component)
    const { resourceVersion } = await client.list(podsOfNode)
    const watch = await client.watch(podsOfNode, { resourceVersion })
    await cloud.sandbox.untilWatches(1)
    watch.hangUp()
    await cloud.sandbox.untilWatches(0)
    t.pass(component)
  }
})

void t.test('an answer that its API server breaks off reaches the client broken off', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const log = await hub.as('kubectl').open('/api/v1/namespaces/default/pods/a/log?follow=true')
  cloud.sandbox.log('default', 'a', 'a line\n')
  const ends = howItEnds(log.on('error', () => undefined).resume())
  cloud.sandbox.faults.reset()
  t.equal(await ends, 'broken')
})
