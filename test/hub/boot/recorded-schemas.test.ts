import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  mostSchemaBytes,
  mostSchemas,
  RecordedSchemas,
} from '../../../src/hub/boot/recorded-schemas.ts'
import type { DocumentRequest } from '../../../src/hub/boot/refresh.ts'
import { documentTypesOf } from '../../../src/api/request/document-type.ts'
import { rootFolder } from '../../kit/root-folder.ts'
import { FakeKubeletCache } from './fake-kubelet-cache.ts'

const wide = 512 * 2 ** 20
const mebibyte = 2 ** 20

/** The index of these groups, each with its hash. */
function cacheWith(groups: Readonly<Record<string, string>>): FakeKubeletCache {
  const cache = new FakeKubeletCache('json')
  index(cache, groups, 1)
  return cache
}

function index(
  cache: FakeKubeletCache,
  groups: Readonly<Record<string, string>>,
  confirmedAt: number,
): void {
  const paths = Object.entries(groups).map(([name, hash]) => [
    name,
    { serverRelativeURL: `/openapi/v3/${name}${hash && `?hash=${hash}`}` },
  ])
  cache.cachedDocuments.splice(0)
  cache.cachedDocuments.push({ url: '/openapi/v3', accept: 'application/json', confirmedAt })
  cache.bodies.set('/openapi/v3', Buffer.from(JSON.stringify({ paths: Object.fromEntries(paths) })))
}

function record(
  schemas: RecordedSchemas,
  cache: FakeKubeletCache,
  request: DocumentRequest,
  bytes: number,
): void {
  const { url, accept } = request
  const [path = ''] = url.split('?')
  cache.bodies.set(path, Buffer.alloc(bytes))
  for (const type of documentTypesOf(accept))
    cache.cachedDocuments.push({ url: path, accept: type, confirmedAt: 2 })
  schemas.confirmed(request, 2, cache)
}

const schemasIn = (folder: string, cacheMaxBytes = wide): RecordedSchemas =>
  new RecordedSchemas(join(folder, 'schemas.json'), cacheMaxBytes, () => undefined)

const states = (requests: readonly DocumentRequest[]): (readonly [string, unknown])[] =>
  requests
    .filter(({ accept }) => accept === 'application/json')
    .map(({ url, schema }) => [url, schema])

void t.test('all groups of the index are wanted, the most used first', async (t) => {
  const schemas = schemasIn(rootFolder(t))
  const cache = cacheWith({
    version: '9',
    api: '8',
    'apis/acme.example/v1': '1',
    apis: '7',
    'apis/apps': '6',
    'apis/apps/v1': '2',
    'api/v1': '3',
  })
  t.strictSame(states(schemas.wanted(cache)), [
    ['/openapi/v3/api/v1?hash=3', 'outdated'],
    ['/openapi/v3/apis/apps/v1?hash=2', 'outdated'],
    ['/openapi/v3/apis/acme.example/v1?hash=1', 'outdated'],
  ])
  t.equal(schemas.wanted(cache).length, 6, 'each in JSON and in protobuf')
})

void t.test('a recorded schema is current as long as the index has its hash', async (t) => {
  const folder = rootFolder(t)
  const before = schemasIn(folder)
  const cache = cacheWith({ 'api/v1': 'A', 'apis/apps/v1': 'B' })
  for (const request of before.wanted(cache)) record(before, cache, request, 10)
  await before[Symbol.asyncDispose]()
  const schemas = schemasIn(folder)
  t.ok(
    schemas.wanted(cache).every(({ schema }) => schema === 'current'),
    'after a restart, too',
  )
  index(cache, { 'api/v1': 'A', 'apis/apps/v1': 'C' }, 2)
  t.strictSame(states(schemas.wanted(cache)), [
    ['/openapi/v3/api/v1?hash=A', 'current'],
    ['/openapi/v3/apis/apps/v1?hash=C', 'outdated'],
  ])
})

void t.test('a stored response with an old hash does not count for the new one', async (t) => {
  const schemas = schemasIn(rootFolder(t))
  const cache = cacheWith({ 'api/v1': 'A' })
  for (const request of schemas.wanted(cache)) record(schemas, cache, request, 10)
  const { cachedDocuments } = cache
  const stored = [...cachedDocuments]
  index(cache, { 'api/v1': 'B' }, 3)
  cachedDocuments.push(...stored)
  for (const request of schemas.wanted(cache)) schemas.confirmed(request, 3, cache)
  t.strictSame(states(schemas.wanted(cache)), [['/openapi/v3/api/v1?hash=B', 'outdated']])
})

void t.test('a schema without a hash is unversioned', async (t) => {
  const schemas = schemasIn(rootFolder(t))
  const cache = cacheWith({ 'api/v1': '' })
  for (const request of schemas.wanted(cache)) record(schemas, cache, request, 10)
  t.strictSame(states(schemas.wanted(cache)), [['/openapi/v3/api/v1', 'unversioned']])
})

void t.test('no more schemas are wanted than there is room for', async (t) => {
  const cache = cacheWith({ 'api/v1': 'A', 'apis/a/v1': 'B', 'apis/b/v1': 'C', 'apis/c/v1': 'D' })
  for (const [most, cacheMaxBytes] of [
    [mostSchemaBytes, wide],
    [mebibyte, 16 * mebibyte],
  ] as const) {
    const schemas = schemasIn(rootFolder(t), cacheMaxBytes)
    for (let at = 0; at < schemas.wanted(cache).length; at++) {
      const request = schemas.wanted(cache)[at]
      if (request) record(schemas, cache, request, most / 4)
    }
    t.equal(schemas.wanted(cache).length, 4, 'four quarters')
  }
  const many = Array.from({ length: 300 }, (_, i) => [`apis/g${i}.example/v1`, 'A'])
  const schemas = schemasIn(rootFolder(t))
  const wanted = schemas.wanted(cacheWith(Object.fromEntries(many) as Record<string, string>))
  t.equal(wanted.length, 2 * mostSchemas)
})

void t.test('an unrecorded schema is not wanted where there is no room for it', async (t) => {
  const cache = cacheWith({ 'apis/a/v1': 'A', 'apis/b/v1': 'B', 'apis/c/v1': 'C' })
  const schemas = schemasIn(rootFolder(t))
  const last = schemas.wanted(cache).slice(-2)
  for (const request of last) record(schemas, cache, request, mostSchemaBytes / 2)
  t.strictSame(states(schemas.wanted(cache)), [['/openapi/v3/apis/c/v1?hash=C', 'current']])
  index(cache, { 'apis/a/v1': 'A', 'apis/b/v1': 'B' }, 2)
  t.equal(schemas.wanted(cache).length, 4, 'until a group is gone')
})

void t.test('a group that has gone is removed from the disk, too', async (t) => {
  const folder = rootFolder(t)
  const before = schemasIn(folder)
  const cache = cacheWith({ 'apis/a/v1': 'A', 'apis/b/v1': 'B' })
  for (const request of before.wanted(cache)) record(before, cache, request, 10)
  await before[Symbol.asyncDispose]()
  index(cache, { 'apis/b/v1': 'B' }, 2)
  const schemas = schemasIn(folder)
  schemas.wanted(cache)
  await schemas[Symbol.asyncDispose]()
  const text = readFileSync(join(folder, 'schemas.json'), 'utf8')
  t.match(text, 'apis/b/v1')
  t.notMatch(text, 'apis/a/v1')
})

void t.test('a schema that the store did not keep is not recorded', async (t) => {
  const schemas = schemasIn(rootFolder(t))
  const cache = cacheWith({ 'api/v1': 'A' })
  for (const request of schemas.wanted(cache)) schemas.confirmed(request, 0, cache)
  t.strictSame(states(schemas.wanted(cache)), [['/openapi/v3/api/v1?hash=A', 'outdated']])
})

void t.test('an index leads nowhere but to schemas', async (t) => {
  const schemas = schemasIn(rootFolder(t))
  t.strictSame(schemas.wanted(new FakeKubeletCache('json')), [], 'before it is recorded')
  const cache = cacheWith({})
  const paths = {
    'api/v1': { serverRelativeURL: '/api/v1/namespaces/default/secrets' },
    'apis/a/v1': { serverRelativeURL: 'https://elsewhere/openapi/v3/apis/a/v1' },
    'apis/b/v1': { serverRelativeURL: '/openapi/v3/apis/b/v1/../../secrets' },
    'apis/c/v1': { serverRelativeURL: 7 },
    'apis/d/v1': null,
  }
  for (const [i, body] of [JSON.stringify({ paths }), '{"paths":[]}', '[', 'null'].entries()) {
    cache.cachedDocuments.splice(0)
    cache.cachedDocuments.push({ url: '/openapi/v3', accept: '*/*', confirmedAt: i })
    cache.bodies.set('/openapi/v3', Buffer.from(body))
    t.strictSame(schemas.wanted(cache), [], body)
  }
})

void t.test('a malformed file counts as none', async (t) => {
  const folder = rootFolder(t)
  for (const text of ['[', '{}', '[["x"]]', '[["/openapi/v3/api/v1 application/json",{}]]']) {
    writeFileSync(join(folder, 'schemas.json'), text)
    const schemas = schemasIn(folder)
    t.ok(schemas.wanted(cacheWith({ 'api/v1': 'A' })).every(({ schema }) => schema === 'outdated'))
  }
})
