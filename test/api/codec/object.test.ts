import t from 'tap'
import { objectBody, readObject } from '../../../src/api/codec/object.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import { fixture } from '../../kit/fixture.ts'

const encodingOf = (name: string): Encoding => (name.endsWith('.pb') ? 'protobuf' : 'json')

void t.test('an object that is read and written again is the same bytes', async (t) => {
  for (const name of [
    'pod-get.json',
    'pod-get.pb',
    'lease-get.json',
    'lease-get.pb',
    'kubernetes-service.json',
    'kubernetes-service.pb',
    'error-404-object.json',
    'error-404-object.pb',
  ]) {
    const body = fixture(name)
    const { gvk, object } = readObject(encodingOf(name), 'object', body)
    t.ok(objectBody(encodingOf(name), 'object', gvk, object).equals(body), name)
  }
})

void t.test('the metadata of an object is read from its body', async (t) => {
  for (const name of ['lease-get.json', 'lease-get.pb']) {
    const { gvk, object } = readObject(encodingOf(name), 'object', fixture(name))
    t.strictSame(gvk, { group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' })
    t.match(object, {
      namespace: 'kube-node-lease',
      name: 'fix-node-1',
      uid: '1d920086-e28d-428a-8d78-6b17029d922a',
      resourceVersion: '227',
    })
  }
})

const readJson = (body: string, projection: Projection = 'object') =>
  readObject('json', projection, Buffer.from(body))

const writeJson = (body: string, projection: Projection = 'object'): string => {
  const { gvk, object } = readJson(body, projection)
  return objectBody('json', projection, gvk, object).toString()
}

void t.test('kind and apiVersion come back', async (t) => {
  for (const body of [
    '{"kind":"A","apiVersion":"v1"}\n',
    '{"kind":"A","apiVersion":"g/v1","x":1}\n',
    '{"apiVersion":"g/v1","kind":"A","metadata":{}}\n',
    '{"metadata":{},"spec":{},"status":{},"kind":"A","apiVersion":"g/v1"}\n',
  ]) {
    t.strictSame(JSON.parse(writeJson(body)), JSON.parse(body))
  }
  t.equal(writeJson('{"kind":"A","apiVersion":"v1"}\n'), '{"kind":"A","apiVersion":"v1"}\n')
})

const table = (rows: string): string =>
  `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"columnDefinitions":[],"rows":[${rows}]}\n`

const row = '{"cells":["a"],"object":{"metadata":{"name":"a","resourceVersion":"1"}}}'

void t.test('a Table of one row is the object as a whole', async (t) => {
  t.equal(writeJson(table(row), 'table'), table(row))
  t.match(readJson(table(row), 'table').object, { name: 'a', resourceVersion: '1' })
  t.match(readJson(table(''), 'table').object, { name: '', resourceVersion: '' })
})

void t.test('a row alone becomes a Table again', async (t) => {
  const gvk = { group: 'meta.k8s.io', version: 'v1', kind: 'Table' }
  const { object } = readJson(table(row), 'table')
  const body = objectBody('json', 'table', gvk, { ...object, bytes: Buffer.from(row) })
  t.strictSame(JSON.parse(body.toString()), {
    ...(JSON.parse(table(row)) as object),
    columnDefinitions: null,
  })
})

void t.test('a body that is not one whole object is malformed', async (t) => {
  for (const body of [
    '',
    ' ',
    '[]',
    '{',
    '{}',
    '{"kind":"A"}',
    '{"kind":"A","apiVersion":"v1"',
    '{"kind":"A","apiVersion":"v1"}{}',
    '{"kind":"A","apiVersion":"v1"}x',
    '{"kind":"A","apiVersion":"v1","a":[}]}',
  ]) {
    t.throws(() => readJson(body), { code: 'MALFORMED_BODY' }, body)
  }
  const body = fixture('pod-get.pb')
  for (let at = 0; at < body.length - 4; at += 7) {
    const cut = body.subarray(0, at)
    t.throws(() => readObject('protobuf', 'object', cut), { code: 'MALFORMED_BODY' })
  }
})
