import t from 'tap'
import { EventLog } from '../../../../src/hub/cache/cacher/event-log.ts'
import { isObjectEvent, versionOf, type WatchEvent } from '../../../../src/api/codec/watch.ts'
import type { ResourceVersion } from '../../../../src/api/kube/resource-version.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')

const event = (version: number, bytes = 100): WatchEvent => ({
  type: 'MODIFIED',
  object: {
    namespace: 'default',
    name: `at-${version}`,
    uid: 'uid',
    resourceVersion: String(version),
    bytes: chunk.subarray(10, 10 + bytes),
  },
  frame: chunk.subarray(0, bytes + 20),
})

const bookmark = (version: number): WatchEvent => ({
  type: 'BOOKMARK',
  resourceVersion: String(version),
  initialEventsEnd: false,
})

const logAt = (version: number): EventLog => new EventLog(String(version))

/** The versions of all events after `version`. */
function after(log: EventLog, version: number): readonly string[] | undefined {
  const cursor = log.after(String(version) as ResourceVersion)
  if (cursor === undefined) return undefined
  const told: string[] = []
  for (let at = cursor; at < log.end; at++) {
    const group = log.at(at)
    if (typeof group !== 'object') throw new Error('it is not there')
    told.push(...group.events.map((one) => versionOf(one) ?? 'unread'))
  }
  return told.filter((each) => Number(each) > version)
}

void t.test('the events after a version come once each and in order', async (t) => {
  const log = logAt(10)
  log.append([event(11), event(12)])
  log.append([event(15), bookmark(20)])
  log.append([event(9), event(15), event(22)])
  t.strictSame(after(log, 10), ['11', '12', '15', '22'])
  t.strictSame(after(log, 11), ['12', '15', '22'], 'out of the middle of a group')
  t.strictSame(after(log, 17), ['22'])
  t.strictSame(after(log, 22), [])
  t.strictSame(after(log, 99), [], 'what has not come yet')
  t.equal(after(log, 9), undefined, 'what was before it began')
  log.append([bookmark(30)])
  t.equal(log.version, '30')
  t.strictSame(after(log, 30), [])
})

void t.test('the oldest events are dropped where there are too many', async (t) => {
  const log = logAt(10)
  const cursor = log.end
  for (const version of [11, 12, 13, 14]) log.append([event(version)])
  log.shrink(log.bytes / 2)
  t.equal(log.at(cursor), 'dropped')
  t.equal(after(log, 11), undefined)
  t.strictSame(after(log, 12), ['13', '14'])
})

void t.test('a log that begins after bookmarks is read from the last change', async (t) => {
  const log = new EventLog('20', '15')
  log.append([event(21)])
  t.strictSame(
    [14, 15, 17, 20, 21].map((version) => after(log, version)?.join()),
    [undefined, '21', '21', '21', ''],
  )
})

void t.test('before a list without changes only versions without a gap are read', async (t) => {
  const log = logAt(10)
  log.append([event(11)])
  log.skip('15')
  log.append([event(16)])
  const from = (...versions: number[]) => versions.map((version) => after(log, version)?.join())
  t.strictSame(from(10, 11, 12, 14, 15, 16), ['11,16', '16', undefined, undefined, '16', ''])
  log.skip('20')
  log.append([event(21)])
  t.strictSame(
    from(11, 14, 15, 16, 17, 20, 21),
    [undefined, undefined, '16,21', '21', undefined, '21', ''],
    'nor what was before an earlier one',
  )
})

void t.test('an event does not hold on to the chunk that it came in', async (t) => {
  const log = logAt(10)
  log.append([event(11)])
  const group = log.at(0)
  if (typeof group !== 'object') throw new Error('it is not there')
  const { frame, object } = group.events.find(isObjectEvent) ?? {}
  t.not(frame?.buffer, chunk.buffer)
  t.not(object?.bytes.buffer, chunk.buffer)
  t.strictSame(Buffer.from(object?.bytes ?? []), Buffer.alloc(100, 'x'))
  t.equal(object?.bytes.buffer, frame?.buffer, 'and its bytes are there once')
})
