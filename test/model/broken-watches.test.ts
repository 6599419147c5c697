/**
 * Checks the model itself: each test breaks what the hub records and shares, and the model has to
 * find the wrong answers. The clients talk to the hub directly.
 */
import t from 'tap'
import { CacheWatcher } from '../../src/hub/cache/cacher/cache-watcher.ts'
import { EventLog } from '../../src/hub/cache/cacher/event-log.ts'
import type { WatchEvent } from '../../src/api/codec/watch.ts'
import { broken, isFound } from './broken.ts'

/** Clients are sent watches whose events were changed like this. */
const brokenWatches = (
  change: (events: readonly WatchEvent[]) => readonly WatchEvent[],
): Disposable =>
  broken(
    CacheWatcher.prototype,
    'events',
    (events) =>
      function (this: CacheWatcher, ...hooks) {
        return each(events.call(this, ...hooks), change)
      },
  )

async function* each(
  groups: AsyncIterable<readonly WatchEvent[]>,
  change: (events: readonly WatchEvent[]) => readonly WatchEvent[],
): AsyncGenerator<readonly WatchEvent[]> {
  for await (const group of groups) yield change(group)
}

void t.test('a lost delete: a recorded watch drops each DELETED', async (t) => {
  using _ = brokenWatches((events) => events.filter(({ type }) => type !== 'DELETED'))
  await isFound(t, [2, 1])
})

void t.test('a duplicate event: a recorded watch repeats each change', async (t) => {
  using _ = brokenWatches((events) =>
    events.flatMap((event) => (event.type === 'MODIFIED' ? [event, event] : [event])),
  )
  await isFound(t, [2, 1])
})

void t.test('a shared hole: the event log lacks every third event', async (t) => {
  let groups = 0
  using _ = broken(
    EventLog.prototype,
    'append',
    (append) =>
      function (this: EventLog, events) {
        return append.call(this, groups++ % 3 === 2 ? events.slice(1) : events)
      },
  )
  await isFound(t, [9, 2])
})
