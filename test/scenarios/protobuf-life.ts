import type { Test } from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import type { TestHub } from '../kit/hub.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const identity = { apiVersion: 'v1', kind: 'ConfigMap' }
const protobuf = 'application/vnd.kubernetes.protobuf'

/** A program that writes and reads nothing but protobuf, as kubelet does. */
async function lifeOfAnObject(t: Test, client: Client, json: Client): Promise<void> {
  const named = (data: JsonObject, metadata: JsonObject = {}): JsonObject => ({
    ...identity,
    metadata: { name: 'settings', namespace: 'default', ...metadata },
    data,
  })
  const created = await client.send(maps, { method: 'POST', body: named({ a: '1' }) })
  t.equal(created.status, 201)
  t.equal(created.headers['content-type'], protobuf)
  const resourceVersion = at(objectOf(created), 'metadata', 'resourceVersion') ?? null

  const updated = await client.send(`${maps}/settings`, {
    method: 'PUT',
    body: named({ a: '2', binary: 'é\u0001' }, { resourceVersion }),
  })
  t.equal(updated.status, 200)
  t.strictSame(at(objectOf(updated), 'data'), { a: '2', binary: 'é\u0001' })
  t.not(at(objectOf(updated), 'metadata', 'resourceVersion'), resourceVersion)

  const late = await client.send(`${maps}/settings`, {
    method: 'PUT',
    body: named({ a: '3' }, { resourceVersion }),
  })
  t.match(objectOf(late), { kind: 'Status', reason: 'Conflict', code: 409 })
  t.equal(late.headers['content-type'], protobuf)

  const read = await client.get(`${maps}/settings`)
  t.strictSame(read.body, updated.body, 'what is read is what the update said')
  t.strictSame(at(objectOf(await json.get(`${maps}/settings`)), 'data'), at(objectOf(read), 'data'))
}

/** A life as `kubelet` writes and reads it, beside a reader of JSON. */
export async function lives(t: Test, hub: TestHub): Promise<void> {
  await lifeOfAnObject(t, hub.as('kubelet', { encoding: 'protobuf' }), hub.as('kubectl'))
}
