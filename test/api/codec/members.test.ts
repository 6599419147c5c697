import t from 'tap'
import { jsonOfObject, withMembers, type MemberChange } from '../../../src/api/codec/members.ts'
import { objectBody, readObject } from '../../../src/api/codec/object.ts'
import { bytesField, stringField } from '../../../src/api/codec/protobuf/wire.ts'
import { enveloped } from '../../../src/api/codec/protobuf/envelope.ts'
import { fromProtobuf, toProtobuf } from '../../../src/sandbox/protobuf.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'

const gvk = { group: '', version: 'v1', kind: 'Node' }

const node: JsonObject = {
  metadata: { name: 'edge-1', uid: 'u', resourceVersion: '7', labels: { a: '1' } },
  spec: { podCIDR: '10.0.0.0/24' },
  status: {
    capacity: { cpu: '4' },
    conditions: [
      { type: 'Ready', status: 'True', lastHeartbeatTime: null, lastTransitionTime: null },
    ],
    volumesInUse: ['a'],
  },
}

const changes: readonly MemberChange[] = [
  { path: ['status', 'conditions'], value: [{ type: 'Ready', status: 'False' }] },
  { path: ['status', 'volumesInUse'], value: undefined },
  { path: ['status', 'phase'], value: 'Running' },
  { path: ['metadata', 'labels'], value: { b: '2' } },
]

const bodies = {
  json: Buffer.from(JSON.stringify({ kind: 'Node', apiVersion: 'v1', ...node })),
  protobuf: toProtobuf(gvk, node),
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`nested members are replaced: ${encoding}`, async (t) => {
    const { object } = readObject(encoding, 'object', bodies[encoding])
    t.match(jsonOfObject(encoding, gvk, object), node)
    const after = withMembers(encoding, gvk, object, changes)
    const json = jsonOfObject(encoding, gvk, after)
    t.match(json, {
      metadata: { name: 'edge-1', uid: 'u', resourceVersion: '7' },
      spec: { podCIDR: '10.0.0.0/24' },
      status: {
        capacity: { cpu: '4' },
        conditions: [{ type: 'Ready', status: 'False' }],
        phase: 'Running',
      },
    })
    t.strictSame((json['metadata'] as JsonObject)['labels'], { b: '2' })
    t.notOk('volumesInUse' in (json['status'] as JsonObject))
    t.equal(after.resourceVersion, '7')
    t.strictSame(withMembers(encoding, gvk, object, []).bytes, object.bytes)
  })
}

void t.test('unknown fields keep their bytes', async (t) => {
  // As a newer cluster may have it: a field of the status, and one of the node.
  const unknown = Buffer.concat([
    bytesField(3, stringField(900, 'of the status')),
    stringField(901, 'of the node'),
  ])
  const { object } = readObject('protobuf', 'object', bodies.protobuf)
  const newer = readObject(
    'protobuf',
    'object',
    enveloped(gvk, Buffer.concat([object.bytes, unknown])),
  )
  const after = withMembers('protobuf', gvk, newer.object, [
    ...changes,
    { path: ['status', 'ofANewerKubelet'], value: 'x' },
  ])
  t.ok(Buffer.from(after.bytes).includes('of the status'))
  t.ok(Buffer.from(after.bytes).includes('of the node'))
  const { object: shown } = fromProtobuf(objectBody('protobuf', gvk, after))
  t.match(shown, { status: { phase: 'Running' } })
})

void t.test('a value that the member cannot have is refused', async (t) => {
  const { object } = readObject('protobuf', 'object', bodies.protobuf)
  const wrong: MemberChange = { path: ['status', 'conditions'], value: 'Ready' }
  t.throws(() => withMembers('protobuf', gvk, object, [wrong]), { code: 'PATH_ERROR' })
})
