import t from 'tap'
import { protobufFrame } from '../../../src/api/codec/event-frame.ts'
import { envelopeParts } from '../../../src/api/codec/protobuf/envelope.ts'
import { watchDecoder } from '../../../src/api/codec/watch-decoder.ts'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import { cutList } from '../../contracts/cutter-list.ts'
import { everySplit, fixture } from '../../kit/fixture.ts'

const encodingOf = (name: string): Encoding => (name.endsWith('.pb') ? 'protobuf' : 'json')

function cut(encoding: Encoding, projection: Projection, chunks: readonly Buffer[]): WatchEvent[] {
  const cutter = watchDecoder(encoding, projection)
  const events = chunks.flatMap((chunk) => cutter.push(chunk))
  cutter.end()
  return events
}

const cutJson = (text: string, projection: Projection = 'object') =>
  cut('json', projection, [Buffer.from(text)])

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('latin1')

/** An event with its bytes as text, to be compared. */
function plain({ frame, ...event }: WatchEvent): string {
  if (!('object' in event)) return JSON.stringify(event) + text(frame)
  const { bytes, ...known } = event.object
  return event.type + JSON.stringify(known) + text(bytes) + text(frame)
}

const bodies: readonly (readonly [string, Projection])[] = [
  ['watchlist-pods.json', 'object'],
  ['watchlist-pods.pb', 'object'],
  ['watchlist-empty.pb', 'object'],
  ['watch-bookmarks.json', 'object'],
  ['watch-bookmarks.pb', 'object'],
  ['watch-configmaps.json', 'object'],
  ['watch-configmaps.pb', 'object'],
  ['watch-custom.json', 'object'],
  ['watch-expired.json', 'object'],
  ['watch-expired.pb', 'object'],
  ['watch-metadata.json', 'metadata'],
]

for (const [name, projection] of bodies) {
  void t.test(`${name} is the same events and the same bytes wherever it is split`, async (t) => {
    const body = fixture(name)
    const whole = cut(encodingOf(name), projection, [body])
    t.ok(Buffer.concat(whole.map(({ frame }) => frame ?? Buffer.alloc(0))).equals(body))
    const expected = whole.map(plain)
    for (const chunks of everySplit(body)) {
      const split = cut(encodingOf(name), projection, chunks).map(plain)
      if (split.length === expected.length && split.every((event, at) => event === expected[at])) {
        continue
      }
      t.fail(`other events when split at ${chunks[0]?.length}`)
      break
    }
  })
}

void t.test('an object of an event has the bytes its list holds', async (t) => {
  for (const [watch, list, projection] of [
    ['watchlist-pods.json', 'pods-list.json', 'object'],
    ['watchlist-pods.pb', 'pods-list.pb', 'object'],
    ['watch-custom.json', 'custom-list.json', 'object'],
    ['watch-metadata.json', 'pods-metadata.json', 'metadata'],
  ] as const) {
    const added = cut(encodingOf(watch), projection, [fixture(watch)]).flatMap((event) =>
      event.type === 'ADDED' ? [event.object] : [],
    )
    const { objects } = cutList(encodingOf(list), projection, [fixture(list)])
    t.ok(objects.length > 0)
    t.strictSame(
      added.map((object) => ({ ...object, bytes: text(object.bytes) })),
      objects.map((object) => ({ ...object, bytes: text(object.bytes) })),
      watch,
    )
  }
})

void t.test('the kind is that of the latest object', async (t) => {
  for (const [name, projection, kind] of [
    ['watchlist-pods.json', 'object', 'Pod'],
    ['watchlist-empty.pb', 'object', 'Pod'],
    ['watch-custom.json', 'object', 'Pump'],
    ['watch-metadata.json', 'metadata', 'PartialObjectMetadata'],
    ['watch-expired.pb', 'object', ''],
  ] as const) {
    const cutter = watchDecoder(encodingOf(name), projection)
    t.equal(cutter.gvk.kind, '')
    cutter.push(fixture(name))
    t.equal(cutter.gvk.kind, kind, name)
  }
})

void t.test('a bookmark has its version and the initial-events-end mark', async (t) => {
  for (const name of ['watchlist-pods.json', 'watchlist-pods.pb', 'watchlist-empty.pb']) {
    const last = cut(encodingOf(name), 'object', [fixture(name)]).at(-1)
    t.match(last, { type: 'BOOKMARK', resourceVersion: /^8/, initialEventsEnd: true }, name)
  }
  const later = cutJson(fixture('watch-bookmarks.json').toString())
  t.match(later, [
    { type: 'BOOKMARK', resourceVersion: '41964', initialEventsEnd: false },
    { type: 'BOOKMARK', resourceVersion: '42024', initialEventsEnd: false },
  ])
  t.match(cut('protobuf', 'object', [fixture('watch-bookmarks.pb')]), [
    { type: 'BOOKMARK', resourceVersion: '42774', initialEventsEnd: false },
  ])
})

void t.test('an error carries the Status that the server sent', async (t) => {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'too old resource version: 1 (883)',
    reason: 'Expired',
    code: 410,
  }
  for (const name of ['watch-expired.json', 'watch-expired.pb']) {
    const [event] = cut(encodingOf(name), 'object', [fixture(name)])
    t.strictSame(event?.type === 'ERROR' && event.status, status, name)
  }
})

const pod = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'
const added = (object: string): string => `{"type":"ADDED","object":${object}}`

void t.test('an event does not wait for the newline behind it', async (t) => {
  const cutter = watchDecoder('json', 'object')
  const [first] = cutter.push(Buffer.from(added(pod)))
  t.equal(text(first?.frame), `${added(pod)}\n`)
  const [second] = cutter.push(Buffer.from(`\n${added(pod)}\n`))
  t.equal(text(second?.frame), `${added(pod)}\n`)
  cutter.end()
})

void t.test('events may follow each other with any white space or none', async (t) => {
  const events = cutJson(` ${added(pod)}${added(pod)}\r\n\n ${added(pod)} \n`)
  t.strictSame(
    events.map(({ frame }) => text(frame)),
    [`${added(pod)}\n`, `${added(pod)}\n`, `${added(pod)}\n`],
  )
})

void t.test(
  'kind and apiVersion leave an object only where built-in types write them',
  async (t) => {
    const bytesOf = (object: string, projection?: Projection): string => {
      const [event] = cutJson(added(object), projection)
      return event?.type === 'ADDED' ? text(event.object.bytes) : ''
    }
    t.equal(bytesOf(pod), '{"metadata":{"name":"a"}}')
    t.equal(bytesOf('{"kind":"Pod","apiVersion":"v1"}'), '{}')
    for (const kept of [
      '{"apiVersion":"v1","kind":"Pod","metadata":{}}',
      '{"kind":"Pod","metadata":{},"apiVersion":"v1"}',
      '{"kind": "Pod","apiVersion":"v1","metadata":{}}',
      '{"metadata":{},"kind":"Pod","apiVersion":"v1"}',
      '{"kind":"Pod","apiVersion":"v1" ,"metadata":{}}',
    ]) {
      t.equal(bytesOf(kept), kept)
    }
    t.equal(bytesOf(pod, 'metadata'), pod)
  },
)

void t.test('an event that changes nothing here is left unread, in its frame', async (t) => {
  for (const body of [
    `{"type":"CHANGED","object":${pod}}\n`,
    '{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{}}}\n',
    '{"type":"BOOKMARK","object":{}}\n',
  ]) {
    const [unread, ...others] = cutJson(body)
    t.equal(unread?.type, 'UNREAD')
    t.equal(text(unread?.frame), body)
    t.strictSame(others, [])
  }
  const gvk = { group: '', version: 'v1', kind: 'Pod' }
  for (const type of ['CHANGED', 'BOOKMARK']) {
    const frame = protobufFrame(type, ...envelopeParts(gvk, Buffer.alloc(0)))
    t.strictSame(cut('protobuf', 'object', [frame]), [{ type: 'UNREAD', frame }], type)
  }
})

void t.test('bytes that are no events are malformed', async (t) => {
  for (const body of [
    'x',
    '[]',
    '{}',
    '{"type":"ADDED"}',
    '{"type":"ADDED","object":null}',
    '{"type":"ADDED","object":{}}',
    `{"object":${pod}}`,
    '{"type":"ERROR","object":{"a":tru}}',
    `${added(pod)},${added(pod)}`,
    `{"type":"ADDED","object":[}}`,
  ]) {
    t.throws(() => cutJson(body), { code: 'MALFORMED_BODY' }, body)
  }
  for (const hex of [
    '00000000',
    'ffffffff',
    '01000001',
    '000000020a05',
    '000000070a054144444544',
    '0000000b0a0541444445441202' + '0a00',
  ]) {
    const body = Buffer.from(hex, 'hex')
    t.throws(() => cut('protobuf', 'object', [body]), { code: 'MALFORMED_BODY' }, hex)
  }
})

void t.test('a frame is no larger than 16 MiB', async (t) => {
  const cutter = watchDecoder('json', 'object')
  cutter.push(Buffer.from('{"type":"ADDED","object":{"a":"'))
  const length = Buffer.from('01000000', 'hex')
  t.throws(() => watchDecoder('protobuf', 'object').push(length), { code: 'MALFORMED_BODY' })
  const filler = Buffer.alloc(1024 * 1024, 'x')
  t.throws(
    () => {
      for (let at = 0; at < 17; at++) cutter.push(filler)
    },
    { code: 'MALFORMED_BODY' },
  )
})
