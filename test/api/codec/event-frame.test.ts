import t from 'tap'
import {
  bookmarkFrame,
  errorFrame,
  eventFrame,
  watchFrame,
} from '../../../src/api/codec/event-frame.ts'
import { watchDecoder } from '../../../src/api/codec/watch-decoder.ts'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import { expired } from '../../../src/api/kube/status.ts'
import { fixture } from '../../kit/fixture.ts'

const encodingOf = (name: string): Encoding => (name.endsWith('.pb') ? 'protobuf' : 'json')

function cut(name: string, projection: Projection) {
  const cutter = watchDecoder(encodingOf(name), projection)
  return { events: cutter.push(fixture(name)), gvk: cutter.gvk }
}

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('latin1')

void t.test('a frame has the API server’s bytes', async (t) => {
  for (const [name, projection] of [
    ['watchlist-pods.json', 'object'],
    ['watchlist-pods.pb', 'object'],
    ['watch-configmaps.json', 'object'],
    ['watch-configmaps.pb', 'object'],
    ['watch-custom.json', 'object'],
    ['watch-metadata.json', 'metadata'],
  ] as const) {
    const { events, gvk } = cut(name, projection)
    for (const event of events) {
      if (event.type === 'BOOKMARK') continue
      t.equal(text(eventFrame(encodingOf(name), gvk, event)), text(event.frame), name)
    }
  }
})

void t.test('an error has the bytes of the API server', async (t) => {
  const status = expired('too old resource version: 1 (883)')
  t.equal(text(errorFrame('json', status)), fixture('watch-expired.json').toString('latin1'))
  t.equal(text(errorFrame('protobuf', status)), fixture('watch-expired.pb').toString('latin1'))
  const gvk = { group: '', version: 'v1', kind: 'Pod' }
  t.equal(
    text(eventFrame('json', gvk, { type: 'ERROR', status })),
    fixture('watch-expired.json').toString('latin1'),
  )
})

void t.test('a bookmark is read in every encoding', async (t) => {
  for (const [encoding, projection, kind] of [
    ['json', 'object', 'Pod'],
    ['protobuf', 'object', 'Pod'],
    ['json', 'metadata', 'PartialObjectMetadata'],
    ['protobuf', 'metadata', 'PartialObjectMetadata'],
  ] as const) {
    for (const initialEventsEnd of [true, false]) {
      const gvk = { group: 'g', version: 'v1', kind }
      const event: WatchEvent = { type: 'BOOKMARK', resourceVersion: '42', initialEventsEnd }
      const frame = eventFrame(encoding, gvk, event)
      const cutter = watchDecoder(encoding, projection)
      t.match(cutter.push(frame), [event])
      t.strictSame(cutter.gvk, gvk)
      cutter.end()
    }
  }
})

void t.test(
  'a bookmark begins as that of the API server, which also has an empty spec',
  async (t) => {
    const pod = { group: '', version: 'v1', kind: 'Pod' }
    const json = bookmarkFrame('json', pod, {
      resourceVersion: '858',
      initialEventsEnd: true,
    }).toString()
    const real = fixture('watchlist-pods.json').toString().split('\n').at(-2) ?? ''
    t.ok(real.startsWith(json.slice(0, -'}}\n'.length)))
    const metadata = bookmarkFrame('protobuf', pod, {
      resourceVersion: '859',
      initialEventsEnd: true,
    })
      .toString('hex')
      .replace(/^.*1a0022002a00/, '')
      .slice(0, 80)
    t.match(fixture('watchlist-empty.pb').toString('hex'), `1a0022002a00${metadata}`)
  },
)

void t.test('an edited object leaves with its kind', async (t) => {
  const gvk = { group: '', version: 'v1', kind: 'Pod' }
  const bytes = Buffer.from('{"metadata":{"name":"a"}}')
  const object = { namespace: '', name: 'a', uid: '', resourceVersion: '', bytes }
  t.equal(
    watchFrame('json', gvk, 'DELETED', object).toString(),
    '{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}\n',
  )
})
