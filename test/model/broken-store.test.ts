/**
 * Checks the model itself: each test breaks the hub's store, and the model has to find the wrong
 * answers. The clients talk to the hub directly.
 */
import t from 'tap'
import type { WatchEvent } from '../../src/api/codec/watch.ts'
import { State } from '../../src/hub/store/state/state.ts'
import { LogStore } from '../../src/hub/store/log/log-store.ts'
import type { StoredList } from '../../src/hub/store/store.ts'
import { broken, isFound } from './broken.ts'

/** The store gives lists that were changed like this. */
const brokenLists = (change: (stored: StoredList) => StoredList): Disposable =>
  broken(
    LogStore.prototype,
    'list',
    (list) =>
      function (this: LogStore, key) {
        const stored = list.call(this, key)
        return stored && change(stored)
      },
  )

void t.test('resurrection: the store forgets that objects were deleted', async (t) => {
  using _ = broken(
    LogStore.prototype,
    'apply',
    (apply) =>
      async function (this: LogStore, key, events, options) {
        const kept = events.map((event): WatchEvent => {
          if (event.type !== 'DELETED') return event
          const { resourceVersion } = event.object
          return { type: 'BOOKMARK', resourceVersion, initialEventsEnd: false }
        })
        return apply.call(this, key, kept, options)
      },
  )
  await isFound(t, [1, 3])
})

void t.test('a torn list: the store gives half of its objects', async (t) => {
  using _ = brokenLists((stored) => {
    const objects = [...stored.batches].flatMap((batch) => batch.objects)
    return { ...stored, batches: [{ objects: objects.slice(0, Math.ceil(objects.length / 2)) }] }
  })
  await isFound(t, [2, 1])
})

void t.test('time travel: the store gives its first list', async (t) => {
  const first = new WeakMap<LogStore, Map<string, StoredList>>()
  using _ = broken(
    LogStore.prototype,
    'list',
    (list) =>
      function (this: LogStore, key) {
        const stored = list.call(this, key)
        const known = first.get(this) ?? new Map<string, StoredList>()
        first.set(this, known)
        const place = JSON.stringify(key)
        if (stored && !known.has(place)) {
          known.set(place, { ...stored, batches: [...stored.batches] })
        }
        return known.get(place)
      },
  )
  await isFound(t, [1, 3])
})

void t.test('a lost change: the store keeps one of two', async (t) => {
  // Of each store by itself: others that run at the time do not change which are lost.
  const changes = new WeakMap<LogStore, number>()
  using _ = broken(
    LogStore.prototype,
    'apply',
    (apply) =>
      async function (this: LogStore, key, events, options) {
        const count = changes.get(this) ?? 0
        changes.set(this, count + 1)
        if (count % 2 === 1) return events.map(() => undefined)
        return apply.call(this, key, events, options)
      },
  )
  await isFound(t, [34, 59, 75])
})

void t.test('an invented version: a list of the store has the next version', async (t) => {
  using _ = brokenLists((stored) => {
    return { ...stored, resourceVersion: String(Number(stored.resourceVersion) + 1) }
  })
  await isFound(t, [2, 1])
})

void t.test('a false 404: the store reports every second object as gone', async (t) => {
  let gets = 0
  using _ = broken(
    LogStore.prototype,
    'get',
    (get) =>
      function (this: LogStore, key) {
        const found = get.call(this, key)
        return typeof found === 'object' && gets++ % 2 === 1 ? 'absent' : found
      },
  )
  await isFound(t, [1, 2])
})

void t.test('a 404 by an older list: the store does not know what it has lost', async (t) => {
  using _ = broken(State.prototype, 'lostAt', () => () => '')
  await isFound(t, [403, 475, 556])
})
