/** What the model is for: each of these breaks the hub, or what it says, in one way, and is found. */
import t from 'tap'
import { isObject, type JsonObject } from '../../src/kube/json.ts'
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { at } from '../kit/client.ts'
import { runRounds } from './run.ts'
import type { Spoiler } from './spoiler.ts'

/** Within so many sequences it is found. */
const enough = 60

/**
 * What one of them is found by first depends on how requests meet: all that tells that something was shown that was not so. That a request
 * was refused does not count.
 */
const shownWrong = /shows|shown as|tells|is at|further page|never issued|in step|stuck/

async function foundWith(spoiler: Spoiler): Promise<string | undefined> {
  const { failed } = await runRounds(7, (round) => round < enough, 4, {
    spoiler,
    childOnceIn: Infinity,
  })
  return failed?.why.message
}

/** Puts something in the place of a method of every store, until disposed. */
function broken<Name extends 'list' | 'apply' | 'replace' | 'get'>(
  name: Name,
  by: (whole: SqliteStore[Name]) => SqliteStore[Name],
): Disposable {
  const whole = SqliteStore.prototype[name]
  SqliteStore.prototype[name] = by(whole)
  return { [Symbol.dispose]: () => void (SqliteStore.prototype[name] = whole) }
}

void t.test('resurrection: the store forgets that objects were deleted', async (t) => {
  using _ = broken(
    'apply',
    (apply) =>
      async function (this: SqliteStore, key, events, options) {
        const told = events.map((event) =>
          event.type === 'DELETED'
            ? ({
                type: 'BOOKMARK',
                resourceVersion: event.object.resourceVersion,
                initialEventsEnd: false,
              } as const)
            : event,
        )
        return apply.call(this, key, told, options)
      },
  )
  t.match(await foundWith({}), shownWrong)
})

void t.test('a torn list: the store gives half of what it has', async (t) => {
  using _ = broken(
    'list',
    (list) =>
      function (this: SqliteStore, key) {
        const stored = list.call(this, key)
        if (!stored) return stored
        const objects = [...stored.batches].flat()
        return { ...stored, batches: [objects.slice(0, Math.ceil(objects.length / 2))] }
      },
  )
  t.match(await foundWith({}), shownWrong)
})

void t.test('time travel: the store gives what it had first', async (t) => {
  const first = new WeakMap<SqliteStore, Map<string, ReturnType<SqliteStore['list']>>>()
  using _ = broken(
    'list',
    (list) =>
      function (this: SqliteStore, key) {
        const stored = list.call(this, key)
        const known = first.get(this) ?? new Map<string, ReturnType<SqliteStore['list']>>()
        first.set(this, known)
        const place = JSON.stringify(key)
        if (stored && !known.has(place))
          known.set(place, { ...stored, batches: [...stored.batches] })
        return known.get(place)
      },
  )
  t.match(await foundWith({}), shownWrong)
})

void t.test('a list of which a change was not kept', async (t) => {
  let changes = 0
  using _ = broken(
    'apply',
    (apply) =>
      async function (this: SqliteStore, key, events, options) {
        if (changes++ % 3 === 2) return events.map(() => undefined)
        return apply.call(this, key, events, options)
      },
  )
  t.match(await foundWith({}), shownWrong)
})

void t.test('a lost delete: a watch swallows one', async (t) => {
  t.match(
    await foundWith({ event: (seen) => (seen.type === 'DELETED' ? undefined : seen) }),
    shownWrong,
  )
})

void t.test('an invented version: a list says the one after its own', async (t) => {
  t.match(
    await foundWith({ list: (list) => withVersion(list, (version) => version + 1) }),
    shownWrong,
  )
})

void t.test('a false 404', async (t) => {
  let gets = 0
  t.match(
    await foundWith({
      get: (answer) =>
        answer.status === 200 && gets++ % 2 === 1 ? { ...answer, status: 404 } : answer,
    }),
    shownWrong,
  )
})

void t.test('an event told twice', async (t) => {
  let last: Parameters<NonNullable<Spoiler['event']>>[0] | undefined
  t.match(
    await foundWith({
      event: (seen) => {
        const before = last
        last = seen
        return seen.type === 'MODIFIED' && before?.type === 'ADDED' ? before : seen
      },
    }),
    shownWrong,
  )
})

function withVersion(list: JsonObject, change: (version: number) => number): JsonObject {
  const { metadata } = list
  if (!isObject(metadata ?? null)) return list
  const version = String(change(Number(at(list, 'metadata', 'resourceVersion'))))
  return { ...list, metadata: { ...(metadata as JsonObject), resourceVersion: version } }
}
