import t from 'tap'
import { EventLog } from '../../../../src/hub/cache/cacher/event-log.ts'
import {
  CacheWatcher,
  type WatcherEnd,
  type CacheWatcherParts,
} from '../../../../src/hub/cache/cacher/cache-watcher.ts'
import { selectionOf } from '../../../../src/api/codec/selection.ts'
import {
  isObjectEvent,
  type ObjectEvent,
  type WatchEvent,
} from '../../../../src/api/codec/watch.ts'
import type { ApiObject } from '../../../../src/api/kube/object.ts'
import type { ResourceVersion } from '../../../../src/api/kube/resource-version.ts'
import { objectRepresentation } from '../../../../src/api/request/representation.ts'
import { services } from '../../../kit/cloud.ts'

// The clock's timers keep no process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))

const at = (version: number): ResourceVersion => String(version) as ResourceVersion

const object = (version: number): ApiObject => ({
  namespace: 'default',
  name: `at-${version}`,
  uid: 'uid',
  resourceVersion: String(version),
  bytes: Buffer.from(`{"metadata":{"resourceVersion":"${version}"}}`),
})

const event = (version: number): ObjectEvent => ({ type: 'ADDED', object: object(version) })

const bookmark = (version: number): WatchEvent => ({
  type: 'BOOKMARK',
  resourceVersion: String(version),
  initialEventsEnd: false,
})

/** A watcher of a log that holds 11 and 12, which came together, and is at 20. */
function reading(parts: Partial<CacheWatcherParts> = {}) {
  const log = new EventLog(at(10))
  log.append([event(11), event(12)])
  log.append([bookmark(20)])
  const selection = selectionOf(
    services,
    { labelSelector: '', fieldSelector: '' },
    objectRepresentation('json'),
  )
  if (!selection) throw new Error('nothing is selected')
  const [leaving, over] = [new AbortController(), new AbortController()]
  const watcher = new CacheWatcher({
    log,
    cursor: 0,
    from: at(10),
    selection,
    gvk: { group: '', version: 'v1', kind: 'Service' },
    encoding: 'json',
    bookmarks: true,
    lastsMs: 60_000,
    signal: leaving.signal,
    logEnded: over.signal,
    ...parts,
  })
  const ends: WatcherEnd[] = []
  const events = watcher.events((end) => ends.push(end))
  const next = async (): Promise<string | undefined> => {
    const { value, done } = await events.next()
    return done === true ? undefined : value.map(told).join()
  }
  const wake = (): void => watcher.wake()
  return { log, watcher, next, wake, leave: () => leaving.abort(), end: () => over.abort(), ends }
}

const told = (one: WatchEvent): string => {
  if (one.type === 'ERROR') return `ERROR ${one.status.code}`
  if (one.type === 'BOOKMARK')
    return `${one.initialEventsEnd ? 'end' : 'bookmark'} ${one.resourceVersion}`
  return isObjectEvent(one) ? one.object.resourceVersion : one.type
}

void t.test('a watcher gets the events after its version, out of merged groups too', async (t) => {
  const { log, next, wake, leave, ends } = reading({ from: at(11) })
  t.equal(await next(), '12')
  t.equal(await next(), 'bookmark 20', 'as far as the log has come')
  const waiting = next()
  log.append([event(21)])
  log.append([event(22), event(23)])
  wake()
  t.equal(await waiting, '21,22,23', 'what waits leaves together')
  leave()
  t.equal(await next(), undefined)
  t.strictSame(ends, ['done'])
})

void t.test('a watcher at a later version waits for the events after it', async (t) => {
  const { log, next, wake } = reading({ from: at(25), lastsMs: 2_050 })
  const waiting = next()
  log.append([event(21), event(25)])
  wake()
  log.append([event(26)])
  wake()
  t.equal(await waiting, '26')
  t.equal(await next(), 'bookmark 26', 'and is given a last bookmark near its end')
  t.equal(await next(), undefined)
})

void t.test('a watcher goes on at a list without changes, one between ends', async (t) => {
  const [goesOn, between] = [
    reading({ cursor: 1, from: at(20) }),
    reading({ cursor: 1, from: at(25) }),
  ]
  for (const { log, watcher } of [goesOn, between]) {
    log.skip('30')
    watcher.skip()
  }
  t.equal(await goesOn.next(), 'bookmark 30')
  t.equal(await between.next(), 'ERROR 410')
})

void t.test('no bookmark takes a watcher back behind its version', async (t) => {
  const { log, next } = reading({ from: at(25), lastsMs: 2_050 })
  t.equal(log.version, '20')
  t.equal(await next(), undefined, 'no bookmark')
})

void t.test('initial objects come first, then the bookmark at their end', async (t) => {
  const batches = [[object(3), object(7)], [object(5)]]
  const { log, next, wake } = reading({
    cursor: 1,
    from: at(20),
    backfill: { batches },
  })
  t.equal(await next(), '3,7')
  t.equal(await next(), '5')
  t.equal(await next(), 'end 20')
  const waiting = next()
  log.append([event(21)])
  wake()
  t.equal(await waiting, '21')
})

void t.test('a watcher of an abandoned event log ends, but not at once', async (t) => {
  const { log, next, wake, end, ends } = reading()
  t.equal(await next(), '11,12')
  t.equal(await next(), 'bookmark 20')
  end()
  const waiting = next()
  log.append([event(21)])
  wake()
  t.equal(await waiting, '21', 'a watch that is over in no time would be taken for a failure')
  t.equal(await next(), undefined)
  t.strictSame(ends, ['over'])
})
