import t from 'tap'
import { EventLog, type LogBounds } from '../../../../src/hub/cache/cacher/event-log.ts'
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

const logAt = (version: number, bounds: Partial<LogBounds> = {}): EventLog =>
  new EventLog(String(version) as ResourceVersion, { groups: 100, bytes: 1024 ** 2, ...bounds })

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

for (const [what, bounds] of [
  ['groups', { groups: 2 }],
  ['bytes', { bytes: 1_000 }],
] as const) {
  void t.test(`the oldest event is dropped where there are too many ${what}`, async (t) => {
    const log = logAt(10, bounds)
    const cursor = log.end
    for (const version of [11, 12, 13, 14]) log.append([event(version)])
    t.equal(log.at(cursor), 'dropped')
    t.equal(after(log, 11), undefined)
    t.strictSame(after(log, 12), ['13', '14'])
    t.ok(log.bytes <= 1_000)
    log.append([event(15, 5_000)])
    t.strictSame(after(log, 14), ['15'], 'but for the newest, however large it is')
  })
}

void t.test('a log that begins after bookmarks is read from the last change', async (t) => {
  const log = new EventLog('20', { groups: 10, bytes: 10_000 }, '15')
  log.append([event(21)])
  t.strictSame(
    [14, 15, 17, 20, 21].map((version) => after(log, version)?.join()),
    [undefined, '21', '21', '21', ''],
  )
})

void t.test('before a list without changes only versions without a gap are read', async (t) => {
  const log = logAt(10, { groups: 3 })
  log.append([event(11)])
  log.skip('15')
  log.append([event(16)])
  log.skip('20')
  log.append([event(21)])
  const versions = [10, 11, 12, 14, 15, 16, 17, 20, 21]
  t.strictSame(
    versions.map((version) => after(log, version)?.join()),
    ['11,16,21', '16,21', undefined, undefined, '16,21', '21', undefined, '21', ''],
  )
  log.append([event(22)])
  t.equal(after(log, 10), undefined, 'dropped')
  t.equal(after(log, 13), undefined)
  t.strictSame(after(log, 15), ['16', '21', '22'])
})

void t.test(
  'of many lists without changes the log forgets what was before the oldest',
  async (t) => {
    const log = logAt(10)
    for (let version = 12; version <= 28; version += 2) log.skip(String(version))
    t.strictSame(
      [10, 12, 13, 14, 28].map((version) => after(log, version)),
      [undefined, [], undefined, [], []],
    )
  },
)

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
