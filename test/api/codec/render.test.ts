import t from 'tap'
import {
  listHead,
  listItems,
  listItemsLength,
  listSeparator,
  listTail,
  statusBody,
} from '../../../src/api/codec/render.ts'
import { readObject } from '../../../src/api/codec/object.ts'
import type { Json } from '../../../src/api/kube/json.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { expired, internalError, notFound, tooManyRequests } from '../../../src/api/kube/status.ts'
import { readStatus, statusOf } from '../../../src/api/codec/protobuf/status.ts'
import { cutList } from '../../contracts/cutter-list.ts'
import { fixture } from '../../kit/fixture.ts'

const encodingOf = (name: string): Encoding => (name.endsWith('.pb') ? 'protobuf' : 'json')

void t.test('a list built from its objects has the API server’s bytes', async (t) => {
  for (const name of [
    'pods-list.json',
    'pods-list.pb',
    'pods-empty.json',
    'pods-empty.pb',
    'pods-metadata.json',
    'pods-metadata.pb',
  ]) {
    const body = fixture(name)
    const encoding = encodingOf(name)
    const { head, objects, end } = cutList(encoding, 'object', [body])
    const [first, ...rest] = objects
    const built = Buffer.concat([
      listHead(encoding, head.gvk, end.meta, end.extra, objects),
      ...listItems(encoding, first ? [first] : []),
      ...(rest.length > 0 ? listSeparator(encoding) : []),
      ...listItems(encoding, rest),
      listTail(encoding),
    ])
    t.ok(built.equals(body), name)
  }
})

void t.test('a paged list has its continue token', async (t) => {
  const { head, objects, end } = cutList('json', 'object', [fixture('pods-page-1.json')])
  const built = listHead('json', head.gvk, end.meta, '', objects)
  t.match(built.toString(), `"continue":"${end.meta.continue}"},"items":[`)
})

void t.test('the length of items is known before they are written', async (t) => {
  const { objects } = cutList('json', 'object', [fixture('pods-list.json')])
  const long = { ...objects[0], bytes: Buffer.alloc(20_000) } as (typeof objects)[number]
  for (const encoding of ['json', 'protobuf'] as const) {
    for (const some of [[], objects.slice(0, 1), [...objects, long]]) {
      const written = Buffer.concat(listItems(encoding, some))
      t.equal(listItemsLength(encoding, some), written.length)
    }
  }
})

void t.test('a Status is written as the API server writes it', async (t) => {
  const none = notFound({ group: '', resource: 'pods', name: 'none' })
  t.equal(statusBody('json', none).toString(), fixture('error-404-object.json').toString())
  t.equal(
    statusBody('protobuf', none).toString('hex'),
    fixture('error-404-object.pb').toString('hex'),
  )
  for (const name of [
    'error-403.json',
    'error-422.json',
    'error-504-too-large-version.json',
    'page-expired.json',
  ]) {
    const status = statusOf(JSON.parse(fixture(name).toString()) as Json)
    t.equal(statusBody('json', status).toString(), fixture(name).toString(), name)
  }
})

void t.test('a Status in protobuf is read back whole', async (t) => {
  for (const status of [
    expired('too old'),
    tooManyRequests('wait', 7),
    internalError('a <b> & c'),
    { ...expired('again'), metadata: { continue: 'token' } },
    notFound({ group: 'apps', resource: 'deployments', name: 'x' }),
  ]) {
    const { object } = readObject('protobuf', 'object', statusBody('protobuf', status))
    t.strictSame(readStatus(Buffer.from(object.bytes)), status)
  }
})

void t.test('a malformed Status reads as code 500', async (t) => {
  for (const value of [null, 1, 'x', [], {}, { code: '1', details: 2, metadata: [] }]) {
    t.match(statusOf(value), { kind: 'Status', status: 'Failure', code: 500 })
  }
})

void t.test('a Status whose numbers Go cannot hold reads as code 500', async (t) => {
  for (const number of [1.5, 2 ** 31, -(2 ** 31) - 1]) {
    const status = statusOf({ code: number, details: { name: 'x', retryAfterSeconds: number } })
    t.match(status, { status: 'Failure', code: 500 })
    const { object } = readObject('protobuf', 'object', statusBody('protobuf', status))
    t.strictSame(readStatus(Buffer.from(object.bytes)), status)
  }
})
