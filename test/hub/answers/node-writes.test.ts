import t from 'tap'
import {
  eventLifetimeMs,
  maxBytes,
  maxWrites,
  NodeWrites,
} from '../../../src/hub/answers/node-writes.ts'
import type { ObjectOfKind } from '../../../src/api/codec/object.ts'

const gvk = { group: '', version: 'v1', kind: 'Event' }
const gvr = { group: '', version: 'v1', resource: 'events' }
const all = { gvr, labelSelector: '', fieldSelector: '' }

const event = (name: string, message = ''): ObjectOfKind => ({
  gvk,
  object: {
    namespace: 'default',
    name,
    uid: '',
    resourceVersion: '',
    bytes: Buffer.from(JSON.stringify({ metadata: { name, namespace: 'default' }, message })),
  },
})

const names = (events: NodeWrites): string[] => events.select(all).map(({ object }) => object.name)

void t.test('the latest events are kept', async (t) => {
  const events = new NodeWrites(() => Date.now())
  for (let at = 0; at <= maxWrites; at++) events.keep(gvr, 'json', event(`e${at}`))
  t.equal(names(events).length, maxWrites)
  t.equal(events.get(gvr, 'default', 'e0'), undefined)
  t.ok(events.get(gvr, 'default', `e${maxWrites}`))
})

void t.test('events are bounded in bytes, too', async (t) => {
  const events = new NodeWrites(() => Date.now())
  const long = 'm'.repeat(maxBytes / 4)
  for (const name of ['a', 'b', 'c', 'd']) events.keep(gvr, 'json', event(name, long))
  t.strictSame(names(events).toSorted(), ['b', 'c', 'd'])
  events.keep(gvr, 'json', event('e', 'm'.repeat(maxBytes)))
  t.notOk(names(events).includes('e'), 'what is larger than all is not kept')
})

void t.test('a sent event is kept for an hour of online time', async (t) => {
  let lastOnline = Date.now()
  const events = new NodeWrites(() => lastOnline)
  events.keep(gvr, 'json', event('sent'), { sentAt: Date.now() })
  events.keep(gvr, 'json', event('written'))
  t.match(events.get(gvr, 'default', 'sent'), { sentAt: Number })
  t.strictSame(names(events).toSorted(), ['sent', 'written'])
  lastOnline = Date.now() + eventLifetimeMs + 1_000
  t.equal(events.get(gvr, 'default', 'sent'), undefined)
  t.strictSame(names(events), ['written'])
})

void t.test('Events of another group, or without a name, are not kept', async (t) => {
  const events = new NodeWrites(() => Date.now())
  events.keep(gvr, 'json', event(''))
  events.keep({ group: 'events.k8s.io', version: 'v1', resource: 'events' }, 'json', event('a'))
  t.strictSame(names(events), [])
  t.strictSame(events.select({ ...all, fieldSelector: 'unknown=1' }), [])
})

void t.test('a status is shown on the same object at the same version only', async (t) => {
  const writes = new NodeWrites(() => Date.now())
  const pods = { group: '', version: 'v1', resource: 'pods' }
  const { object } = event('a', 'patched')
  const pod = { ...object, uid: 'first', resourceVersion: '5' }
  writes.keepPatched(pods, 'json', { gvk: { group: '', version: 'v1', kind: 'Pod' }, object: pod })
  t.match(JSON.parse(String(writes.patched(pods, pod)?.object.bytes)), { message: 'patched' })
  t.equal(writes.patched(pods, { ...pod, uid: 'second' }), undefined)
  t.equal(writes.patched(pods, { ...pod, resourceVersion: '6' }), undefined)
  t.strictSame(writes.select({ ...all, gvr: pods }), [], 'it is no object of its own')
})
