import t from 'tap'
import { objectBody, readObject } from '../../../src/api/codec/object.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
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
    t.ok(objectBody(encodingOf(name), gvk, object).equals(body), name)
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

const readJson = (body: string) => readObject('json', 'object', Buffer.from(body))

const writeJson = (body: string): string => {
  const { gvk, object } = readJson(body)
  return objectBody('json', gvk, object).toString()
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
