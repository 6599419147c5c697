import t, { type Test } from 'tap'
import { applyEdits, atVersion, type Edit, type EditValue } from '../../src/codec/edit.ts'
import { cursorOf } from '../../src/codec/cursor.ts'
import { objectBody, readObject } from '../../src/codec/object.ts'
import type { JsonObject } from '../../src/kube/json.ts'
import type { GVK } from '../../src/kube/gvk.ts'
import type { ApiObject } from '../../src/kube/object.ts'
import { fromProtobuf, toProtobuf } from '../../src/sandbox/protobuf.ts'
import { cutList } from '../contracts/cutter-list.ts'
import { objectKind } from '../../src/codec/list.ts'
import { fixture } from '../kit/fixture.ts'

const set = (path: Edit['path'], value: EditValue): Edit => ({ op: 'set', path, value })
const remove = (path: Edit['path']): Edit => ({ op: 'remove', path })

interface Sample {
  readonly gvk: GVK
  readonly json: ApiObject
  readonly protobuf: ApiObject
}

const pod: Sample = {
  gvk: { group: '', version: 'v1', kind: 'Pod' },
  json: readObject('json', 'object', fixture('pod-get.json')).object,
  protobuf: readObject('protobuf', 'object', fixture('pod-get.pb')).object,
}

const service = ((): Sample => {
  const json = cutList('json', 'object', [fixture('services-list.json')])
  const protobuf = cutList('protobuf', 'object', [fixture('services-list.pb')])
  const [a, b] = [json.objects[0], protobuf.objects[0]]
  if (!a || !b) throw new Error('no service')
  return { gvk: objectKind(json.head.gvk), json: a, protobuf: b }
})()

type Value = string | number | boolean | null | Value[] | { [key: string]: Value }

/** What an edit means, on plain values: the judge of both encodings. */
function edited(
  value: Value | undefined,
  [step, ...rest]: Edit['path'],
  edit: Edit,
): Value | undefined {
  if (step === undefined)
    return edit.op === 'set' ? structuredClone(edit.value as Value) : undefined
  const missing = value === undefined || value === null
  if (missing && (edit.op === 'remove' || step === '*' || rest.includes('*'))) return value
  if (typeof step === 'string' && step !== '*') {
    const object = { ...(value as Record<string, Value>) }
    const inner = edited(object[step], rest, edit)
    if (inner === undefined) delete object[step]
    else object[step] = inner
    return object
  }
  const list = missing ? [] : [...(value as Value[])]
  if (step === list.length) list.push(null)
  return list.flatMap((element, at) => {
    if (step !== '*' && step !== at) return [element]
    const inner = edited(element, rest, edit)
    return inner === undefined ? [] : [inner]
  })
}

/** Applies edits in both encodings and by the judge above; all three have to agree. */
function agree(t: Test, { gvk, json, protobuf }: Sample, edits: readonly Edit[]): void {
  const before = JSON.parse(Buffer.from(json.bytes).toString()) as Value
  const expected = edits.reduce<Value | undefined>(
    (value, edit) => edited(value, edit.path, edit),
    before,
  )
  const inJson = applyEdits('json', gvk, json, edits)
  t.strictSame(JSON.parse(Buffer.from(inJson.bytes).toString()), expected)
  const inProtobuf = applyEdits('protobuf', gvk, protobuf, edits)
  const { kind, apiVersion, ...read } = fromProtobuf(
    objectBody('protobuf', 'object', gvk, inProtobuf),
  ).object
  t.strictSame({ kind, apiVersion, read }, { kind: gvk.kind, apiVersion: 'v1', read: expected })
}

void t.test('an edit means the same in both encodings, and touches nothing else', async (t) => {
  const podEdits: readonly (readonly Edit[])[] = [
    [set(['spec', 'hostNetwork'], true)],
    [set(['spec', 'nodeName'], 'a-node-with-a-much-longer-name-'.repeat(10))],
    [set(['spec', 'dnsPolicy'], 'Default'), set(['spec', 'dnsPolicy'], 'None')],
    [remove(['spec', 'nodeName'])],
    [remove(['spec', 'tolerations'])],
    [remove(['spec', 'hostNetwork']), remove(['metadata', 'creationTimestamp'])],
    [remove(['spec', 'terminationGracePeriodSeconds'])],
    [set(['metadata', 'labels', 'new'], 'label')],
    [set(['metadata', 'labels', 'app'], 'other')],
    [remove(['metadata', 'labels', 'app'])],
    [remove(['metadata', 'annotations'])],
    [set(['metadata', 'labels'], { b: '2', a: '1' })],
    [set(['metadata', 'finalizers'], ['x', 'y']), set(['metadata', 'finalizers', 2], 'z')],
    [set(['metadata', 'finalizers', 0], 'first')],
    [set(['metadata', 'deletionTimestamp'], '2026-11-21T10:16:51Z')],
    [set(['spec', 'containers', '*', 'imagePullPolicy'], 'Never')],
    [set(['spec', 'containers', 0, 'env', '*', 'value'], '<&>')],
    [set(['spec', 'containers', '*', 'ports', '*', 'hostPort'], 8080)],
    [remove(['spec', 'containers', '*', 'ports'])],
    [remove(['spec', 'containers', 0, 'ports', '*', 'name'])],
    [remove(['spec', 'tolerations', 0])],
    [remove(['spec', 'tolerations', '*', 'tolerationSeconds'])],
    [set(['spec', 'tolerations', 2], { key: 'k', operator: 'Exists', tolerationSeconds: -1 })],
    [set(['spec', 'nodeSelector', 'zone'], 'a')],
    [set(['spec', 'dnsConfig', 'options', 0, 'name'], 'ndots')],
    [set(['spec', 'containers', 0, 'resources', 'limits', 'cpu'], '100m')],
    [set(['spec', 'containers', 0, 'livenessProbe'], { periodSeconds: 5 })],
    [set(['spec', 'securityContext', 'supplementalGroups'], [1, 2, 300])],
    [set(['status', 'phase'], 'Running'), remove(['status', 'qosClass'])],
    [remove(['metadata', 'deletionTimestamp']), remove(['spec', 'hostAliases', '*', 'ip'])],
  ]
  for (const edits of podEdits) agree(t, pod, edits)
  const serviceEdits: readonly (readonly Edit[])[] = [
    [set(['spec', 'clusterIP'], '169.254.2.1'), set(['spec', 'clusterIPs'], ['169.254.2.1'])],
    [set(['spec', 'ports', 0, 'port'], 10268)],
    [set(['spec', 'ports', 0, 'targetPort'], 'https')],
    [set(['spec', 'ports', 0, 'targetPort'], 65535)],
    [set(['spec', 'ports', 1], { name: 'b', protocol: 'TCP', port: 2, targetPort: 'b' })],
    [set(['spec', 'externalIPs'], ['1.2.3.4'])],
    [set(['spec', 'allocateLoadBalancerNodePorts'], false)],
    [set(['spec', 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds'], 10)],
    [remove(['spec', 'selector'])],
    [set(['status', 'loadBalancer', 'ingress', 0, 'ip'], '1.2.3.4')],
  ]
  for (const edits of serviceEdits) agree(t, service, edits)
})

void t.test('edited protobuf is what Go would have written', async (t) => {
  for (const edits of [
    [set(['metadata', 'labels', 'aaa'], 'first'), set(['metadata', 'labels', 'zzz'], 'last')],
    [set(['metadata', 'labels', 'tier'], 'other'), remove(['metadata', 'labels', 'app'])],
    [set(['metadata', 'finalizers'], ['a', 'b'])],
    [set(['spec', 'hostUsers'], false), set(['spec', 'hostname'], 'h')],
    [remove(['spec', 'nodeName']), remove(['spec', 'tolerations', 0])],
    [set(['spec', 'containers', '*', 'ports', '*', 'hostPort'], 8080)],
    [set(['spec', 'nodeSelector'], { b: '1', a: '2' })],
  ]) {
    const inJson = applyEdits('json', pod.gvk, pod.json, edits)
    const json = JSON.parse(Buffer.from(inJson.bytes).toString()) as JsonObject
    const inProtobuf = applyEdits('protobuf', pod.gvk, pod.protobuf, edits)
    const written = objectBody('protobuf', 'object', pod.gvk, inProtobuf)
    t.equal(written.toString('latin1'), toProtobuf(pod.gvk, json).toString('latin1'))
  }
})

void t.test('what an edit does not name keeps its bytes, unknown fields too', async (t) => {
  const unknown = Buffer.from('fa7f03616263', 'hex') // field 2047
  const bytes = Buffer.concat([pod.protobuf.bytes, unknown])
  const after = applyEdits('protobuf', pod.gvk, { ...pod.protobuf, bytes }, [
    set(['spec', 'hostNetwork'], true),
  ])
  t.equal(after.bytes.byteLength, bytes.length, 'one byte changes, no length')
  const changed = [...bytes].filter((byte, at) => byte !== after.bytes[at])
  t.equal(changed.length, 1)
  t.ok(Buffer.from(after.bytes).subarray(-unknown.length).equals(unknown))
  const odd = '{ "x" : [1,2 ] ,"metadata":{ "labels":null,"name" :"a"}, "y":1e400 }'
  const object = { ...pod.json, bytes: Buffer.from(odd) }
  const shown = applyEdits('json', pod.gvk, object, [set(['metadata', 'labels', 'a'], 'b')])
  t.equal(
    Buffer.from(shown.bytes).toString(),
    '{ "x" : [1,2 ] ,"metadata":{ "labels":{"a":"b"},"name" :"a"}, "y":1e400 }',
  )
})

void t.test('edits that change nothing leave the same object', async (t) => {
  for (const edits of [
    [],
    [set(['spec', 'nodeName'], 'fix-node-1')],
    [remove(['spec', 'hostname']), remove(['metadata', 'labels', 'none'])],
    [set(['spec', 'hostAliases', '*', 'ip'], '1.1.1.1')],
    [remove(['spec', 'containers', 99])],
  ]) {
    t.equal(applyEdits('json', pod.gvk, pod.json, edits), pod.json)
    t.equal(applyEdits('protobuf', pod.gvk, pod.protobuf, edits), pod.protobuf)
  }
})

void t.test('an edited object is known by what it was known by', async (t) => {
  const { bytes: _, ...known } = applyEdits('json', pod.gvk, pod.json, [
    set(['metadata', 'labels', 'a'], 'b'),
  ])
  const { bytes: __, ...expected } = pod.json
  t.strictSame(known, expected)
})

void t.test(
  'what an object is known by, and what its kind has no place for, is refused',
  async (t) => {
    const refused: readonly Edit[] = [
      set([], {}),
      set(['metadata'], {}),
      remove(['metadata']),
      set(['metadata', 'name'], 'x'),
      set(['metadata', 'namespace'], 'x'),
      remove(['metadata', 'uid']),
      set(['metadata', 'resourceVersion'], '0'),
      set(['kind'], 'x'),
      set(['apiVersion'], 'x'),
      set(['spec', 'containers', 99], 'x'),
      set(['spec', 'containers', 99, 'name'], 'x'),
      set(['spec', 'nodeName', 'x'], 'x'),
      set(['spec', 'containers', 'name'], 'x'),
      set(['spec', '*'], 'x'),
    ]
    for (const edit of refused) {
      const path = edit.path.join('.')
      t.throws(() => applyEdits('json', pod.gvk, pod.json, [edit]), { code: 'PATH_ERROR' }, path)
      t.throws(
        () => applyEdits('protobuf', pod.gvk, pod.protobuf, [edit]),
        { code: 'PATH_ERROR' },
        path,
      )
    }
    for (const edit of [
      set(['spec', 'nodename'], 'x'),
      set(['spec', 'nodeName'], 1),
      set(['spec', 'hostNetwork'], 'true'),
      set(['spec', 'priority'], 1.5),
      set(['spec', 'nodeSelector'], 'x'),
      set(['spec', 'containers'], {}),
      set(['spec', 'containers', 0], 'x'),
      set(['metadata', 'labels', '*'], 'x'),
      set(['metadata', 'creationTimestamp'], 'yesterday'),
    ]) {
      t.throws(() => applyEdits('protobuf', pod.gvk, pod.protobuf, [edit]), { code: 'PATH_ERROR' })
    }
  },
)

const onJson = (bytes: string, ...edits: Edit[]): string =>
  Buffer.from(
    applyEdits('json', pod.gvk, { ...pod.json, bytes: Buffer.from(bytes) }, edits).bytes,
  ).toString()

void t.test('of duplicated keys the last is set, and all are removed', async (t) => {
  t.equal(onJson('{"a":1,"a":2}', set(['a'], 3)), '{"a":1,"a":3}')
  t.equal(onJson('{"a":1,"b":2,"a":3}', remove(['a'])), '{"b":2}')
})

void t.test('members come and go with their commas', async (t) => {
  t.equal(onJson('{"a":1,"b":2}', remove(['a'])), '{"b":2}')
  t.equal(onJson('{"a":1,"b":2}', remove(['b'])), '{"a":1}')
  t.equal(onJson('{"a":1}', remove(['a'])), '{}')
  t.equal(onJson('{ }', set(['a'], 1)), '{ "a":1}')
  t.equal(onJson('{"a":[1,2,3]}', remove(['a', 1])), '{"a":[1,3]}')
  t.equal(onJson('{"a":[1,2,3]}', remove(['a', '*'])), '{"a":[]}')
  t.equal(onJson('{"a":[]}', set(['a', 0], 1)), '{"a":[1]}')
  t.equal(onJson('{"a":[1]}', set(['a', 1], 2)), '{"a":[1,2]}')
  t.equal(onJson('{"a":[1,2]}', set(['a', '*'], 0)), '{"a":[0,0]}')
  t.equal(onJson('{}', set(['a', 'b', 0, 'c"'], '<')), '{"a":{"b":[{"c\\"":"\\u003c"}]}}')
  t.equal(onJson('{"a":null}', set(['a', 0], 1)), '{"a":[1]}')
})

void t.test('a message written in pieces is edited as the one it is', async (t) => {
  const more = Buffer.from('1205580152016e', 'hex') // spec{hostNetwork: true, nodeName: n}
  const object = { ...pod.protobuf, bytes: Buffer.concat([pod.protobuf.bytes, more]) }
  const after = applyEdits('protobuf', pod.gvk, object, [remove(['spec', 'nodeName'])])
  const cursor = cursorOf('protobuf', pod.gvk, after)
  t.equal(cursor.value(['spec', 'nodeName']), undefined)
  t.equal(cursor.value(['spec', 'hostNetwork']), true)
  t.ok(cursor.value(['spec', 'containers', 0, 'name']))
})

void t.test('of what shows only metadata only metadata is edited', async (t) => {
  for (const [encoding, name, shape] of [
    ['json', 'pods-metadata.json', 'metadata'],
    ['protobuf', 'pods-metadata.pb', 'metadata'],
    ['json', 'pods-table.json', 'table'],
  ] as const) {
    const { objects, head } = cutList(encoding, shape, [fixture(name)])
    const gvk = objectKind(head.gvk)
    const [object] = objects
    if (!object) throw new Error('no object')
    t.equal(applyEdits(encoding, gvk, object, [set(['spec', 'nodeName'], 'x')]), object)
    const after = applyEdits(encoding, gvk, object, [set(['metadata', 'labels', 'a'], 'b')])
    t.equal(cursorOf(encoding, gvk, after).label('a'), 'b', name)
  }
})

void t.test('an object can be shown at the version of its end', async (t) => {
  for (const encoding of ['json', 'protobuf'] as const) {
    const after = atVersion(encoding, pod.gvk, pod[encoding], '123456')
    t.equal(after.resourceVersion, '123456')
    const body = objectBody(encoding, 'object', pod.gvk, after)
    t.strictSame(readObject(encoding, 'object', body).object.resourceVersion, '123456')
    t.equal(cursorOf(encoding, pod.gvk, after).label('app'), 'collector')
  }
})
