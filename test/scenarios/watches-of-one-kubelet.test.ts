import t from 'tap'
import { at } from '../kit/client.ts'
import { configMaps } from '../kit/cloud.ts'
import { heldForGood } from '../kit/held-bytes.ts'
import { startOnlineHub, startCloud } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'

t.setTimeout(300_000) // so many watches take their time on a busy machine

/**
 * A kubelet watches each ConfigMap and Secret that its pods mount by name; what an operator watches
 * is not recorded.
 */
const counts = { kubelet: 300, operator: 100 }

/** What a watch may cost the whole process, in which client, hub and cloud are. */
const bytesEach = 192 * 1024

function warnings(t: Teardown): readonly Error[] {
  const seen: Error[] = []
  const see = (warning: Error): void => void seen.push(warning)
  process.on('warning', see)
  t.teardown(() => process.off('warning', see))
  return seen
}

for (const [component, count] of Object.entries(counts)) {
  void t.test(
    `${count} watches of ${component} each see what happens to their own object`,
    async (t) => {
      const seen = warnings(t)
      const cloud = await startCloud(t)
      const names = Array.from({ length: count }, (_, i) => `c-${i}`)
      for (const name of names) {
        cloud.sandbox.create(configMaps, { metadata: { name, namespace: 'default' } })
      }
      const hub = await startOnlineHub(t, { upstreams: [cloud] })
      const client = hub.as(component)
      const ofOne = (name: string): string =>
        `/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3D${name}`
      // As a kubelet does: who was never shown a list here would have to list first.
      const versions: string[] = []
      for (const name of names) versions.push((await client.list(ofOne(name))).resourceVersion)
      const before = await heldForGood()
      const watches = await Promise.all(
        names.map((name, at) => client.watch(ofOne(name), { resourceVersion: versions[at] ?? '' })),
      )
      const each = ((await heldForGood()) - before) / count
      t.ok(each < bytesEach, `${Math.round(each)} bytes a watch`)
      t.equal(await hub.metric('nodehub_watches'), count)
      for (let round = 0; round < 2; round++) {
        for (const name of names) cloud.touch(configMaps, name, 'default')
        const events = await Promise.all(watches.map((watch) => watch.next()))
        t.strictSame(
          events.map((event) => at(event?.object, 'metadata', 'name')),
          names,
        )
      }
      for (const watch of watches) watch.hangUp()
      await cloud.sandbox.untilWatches(0)
      t.strictSame(seen, [])
    },
  )
}
