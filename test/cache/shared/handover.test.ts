import t from 'tap'
import { handingOver } from '../../../src/cache/shared/handover.ts'
import type { WatchEvent } from '../../../src/codec/watch.ts'

const added = (version: number): WatchEvent => ({
  type: 'ADDED',
  object: {
    namespace: 'default',
    name: `at-${version}`,
    uid: 'uid',
    resourceVersion: String(version),
    bytes: Buffer.from('{}'),
  },
})

const bookmark = (version: number): WatchEvent => ({
  type: 'BOOKMARK',
  resourceVersion: String(version),
  initialEventsEnd: true,
})

async function* groups(
  ...all: readonly (readonly WatchEvent[])[]
): AsyncGenerator<readonly WatchEvent[]> {
  yield* all
}

void t.test(
  'nobody is handed over among initial events, whose versions do not say what was told',
  async (t) => {
    const askedFor: string[] = []
    const told: WatchEvent[] = []
    let handedOver = 0
    const own = groups([added(9)], [added(5)], [bookmark(9)], [added(10)], [added(11)])
    const goOn = (version: string): AsyncIterable<readonly WatchEvent[]> | undefined => {
      askedFor.push(version)
      // What is shared has not come as far at the bookmark.
      return version === '10' ? groups([added(12)]) : undefined
    }
    const events = handingOver(own, goOn, () => {
      handedOver += 1
    })
    for await (const group of events) told.push(...group)
    t.strictSame(askedFor, ['9', '10'])
    t.strictSame(told, [added(9), added(5), bookmark(9), added(10), added(12)])
    t.equal(handedOver, 1)
  },
)
