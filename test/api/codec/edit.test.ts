import t, { type Test } from 'tap'
import {
  applyEdits,
  atVersion,
  type Edit,
  type EditValue,
  type ElementChange,
} from '../../../src/api/codec/edit.ts'
import { cursorOf } from '../../../src/api/codec/cursor.ts'
import { objectBody, readObject } from '../../../src/api/codec/object.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import type { GVK } from '../../../src/api/kube/gvk.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { fromProtobuf, toProtobuf } from '../../../src/sandbox/protobuf.ts'
import { cutList } from '../../contracts/cutter-list.ts'
import { objectKind } from '../../../src/api/codec/list.ts'
import { fixture } from '../../kit/fixture.ts'
import { withoutEmpty } from '../../kit/filter-result.ts'

const set = (path: Edit['path'], value: EditValue): Edit => ({ op: 'set', path, value })
const remove = (path: Edit['path']): Edit => ({ op: 'remove', path })
const each = (path: Edit['path'], change: ElementChange): Edit => ({ op: 'each', path, change })

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

const node: Sample = {
  gvk: { group: '', version: 'v1', kind: 'Node' },
  json: readObject('json', 'object', fixture('node-get.json')).object,
  protobuf: readObject('protobuf', 'object', fixture('node-get.pb')).object,
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
  if (edit.op === 'each') return eachOf(value, [step, ...rest], edit.change)
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

/** The same for the elements of lists, which are read as JavaScript reads them. */
function eachOf(
  value: Value | undefined,
  [step, ...rest]: Edit['path'],
  change: ElementChange,
): Value | undefined {
  if (Array.isArray(value) && step === undefined) return value.flatMap((it) => judged(it, change))
  if (Array.isArray(value) && step === '*') {
    return value.map((element) => eachOf(element, rest, change) ?? null)
  }
  if (
    value === null ||
    typeof value !== 'object' ||
    Array.isArray(value) ||
    typeof step !== 'string'
  )
    return value
  const inner = value?.[step]
  return inner === undefined ? value : { ...value, [step]: eachOf(inner, rest, change) ?? null }
}

function judged(element: Value, change: ElementChange): Value[] {
  const read = (path: Edit['path']): Value | undefined =>
    path.reduce<Value | undefined>(
      (at, step) => (at as Record<string, Value> | undefined)?.[step],
      element,
    )
  const verdict = change({
    value: (path) => {
      const found = read(path)
      return typeof found === 'object' ? undefined : (found ?? undefined)
    },
    has: (path) => (read(path) ?? undefined) !== undefined,
    count: (path) => (read(path) as Value[] | undefined)?.length ?? 0,
  })
  if (verdict === 'remove') return []
  if (verdict === 'leave') return [element]
  return [verdict.reduce<Value>((made, edit) => edited(made, edit.path, edit) ?? null, element)]
}

/** Applies edits in both encodings and by the judge above; all three have to agree. */
function agree(
  t: Test,
  { gvk, json, protobuf }: Sample,
  edits: readonly Edit[],
  alike = (value: Json | undefined): Json | undefined => value,
): void {
  const before = JSON.parse(Buffer.from(json.bytes).toString()) as Value
  const expected = edits.reduce<Value | undefined>(
    (value, edit) => edited(value, edit.path, edit),
    before,
  )
  const inJson = applyEdits('json', gvk, json, edits)
  t.strictSame(JSON.parse(Buffer.from(inJson.bytes).toString()), expected)
  const inProtobuf = applyEdits('protobuf', gvk, protobuf, edits)
  const { kind, apiVersion, ...read } = fromProtobuf(objectBody('protobuf', gvk, inProtobuf)).object
  t.strictSame({ kind, apiVersion }, { kind: gvk.kind, apiVersion: 'v1' })
  t.strictSame(alike(read), alike(expected))
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

void t.test('the elements of a list are edited one by one', async (t) => {
  const named =
    (name: string, then: ReturnType<ElementChange>): ElementChange =>
    (element) =>
      element.value(['name']) === name ? then : 'leave'
  const first = (): ElementChange => {
    let at = 0
    return () => (at++ === 0 ? 'remove' : 'leave')
  }
  const env = ['spec', 'containers', '*', 'env']
  const lists: readonly Edit['path'][] = [
    ['spec', 'tolerations'],
    ['spec', 'containers'],
    env,
    ['metadata', 'managedFields'],
    ['spec', 'containers', '*', 'command'],
    ['spec', 'hostAliases'],
    ['spec', 'hostAliases', '*', 'hostnames'],
    ['spec', 'securityContext', 'supplementalGroups'],
  ]
  for (const path of lists) {
    agree(t, pod, [each(path, () => 'remove')], withoutEmpty)
    agree(t, pod, [each(path, () => 'leave')])
    for (const encoding of ['json', 'protobuf'] as const) {
      const removed = applyEdits(encoding, pod.gvk, pod[encoding], [each(path, first())])
      const cursor = cursorOf(encoding, pod.gvk, removed)
      if (path.includes('*')) continue
      const before = cursorOf(encoding, pod.gvk, pod[encoding]).count(path)
      t.equal(cursor.count(path), Math.max(0, before - 1), path.join('.'))
    }
  }
  const editLists: readonly (readonly Edit[])[] = [
    [each(env, named('HOME', 'remove'))],
    [each(env, (variable) => (variable.has(['valueFrom']) ? 'remove' : 'leave'))],
    [each(env, (variable) => (variable.has(['value']) ? [set(['value'], '<&>')] : 'leave'))],
    [each(env, () => [remove(['value']), set(['valueFrom', 'fieldRef', 'fieldPath'], 'a')])],
    [each(['spec', 'tolerations'], () => [set(['key'], 'k'), remove(['tolerationSeconds'])])],
    [
      each(['spec', 'containers'], (container) =>
        container.count(['ports']) > 0 ? [each(['ports'], () => 'remove')] : 'leave',
      ),
    ],
    [
      each(['spec', 'containers'], () => [
        each(['env'], (variable) => (variable.has(['valueFrom']) ? 'leave' : 'remove')),
        set(['image'], 'b'),
      ]),
    ],
  ]
  for (const edits of editLists) agree(t, pod, edits, withoutEmpty)
})

void t.test('elements kept in an edited list keep their bytes', async (t) => {
  const odd = '{"a":[ {"x" : 1e400 , "y":"\\u0061\\/"} ,{ "n":1}, {"n":1},"\xff" ]}'
  const bytes = Buffer.from(odd, 'latin1')
  const object = { ...pod.json, bytes }
  const oneOf = (edit: Edit): string =>
    Buffer.from(applyEdits('json', pod.gvk, object, [edit]).bytes).toString('latin1')
  t.equal(
    oneOf(each(['a'], (element) => (element.value(['n']) === 1 ? 'remove' : 'leave'))),
    '{"a":[{"x" : 1e400 , "y":"\\u0061\\/"},"\xff"]}',
  )
  t.equal(
    oneOf(each(['a'], (element) => (element.has(['n']) ? [set(['n'], 2)] : 'leave'))),
    odd.replaceAll('"n":1', '"n":2'),
  )
  t.equal(oneOf(remove(['a', 1])), '{"a":[{"x" : 1e400 , "y":"\\u0061\\/"},{"n":1},"\xff"]}')
  // A toleration with an unknown field and a length written in more bytes than it takes, then one
  // that goes.
  const [kept, gone] = [
    Buffer.from('b2018600' + '0a0161' + 'f80105', 'hex'),
    Buffer.from('b201030a0162', 'hex'),
  ]
  const spec = Buffer.concat([kept, Buffer.from('f201027879', 'hex'), gone])
  const message = Buffer.concat([Buffer.from([0x12, spec.length]), spec])
  const after = applyEdits('protobuf', pod.gvk, { ...pod.protobuf, bytes: message }, [
    each(['spec', 'tolerations'], (one) => (one.value(['key']) === 'b' ? 'remove' : 'leave')),
  ])
  const left = spec.subarray(0, spec.length - gone.length)
  t.equal(
    Buffer.from(after.bytes).toString('hex'),
    Buffer.concat([Buffer.from([0x12, left.length]), left]).toString('hex'),
  )
})

void t.test('a missing list, or no list, has no elements to edit', async (t) => {
  const none = (path: Edit['path']): Edit => each(path, () => 'remove')
  for (const json of ['{"a":null}', '{"a":1}', '{"a":{"b":"c"}}', '{}', '{"b":[1]}']) {
    t.equal(onJson(json, none(['a'])), json)
    t.equal(onJson(json, none(['a', '*', 'b'])), json)
    t.equal(onJson(json, none(['a', 'b', 'c'])), json)
  }
  t.throws(() => applyEdits('protobuf', pod.gvk, pod.protobuf, [none(['spec', 'nodeName'])]), {
    code: 'PATH_ERROR',
  })
  t.equal(
    applyEdits('protobuf', pod.gvk, pod.protobuf, [none(['spec', 'hostAliases'])]),
    pod.protobuf,
  )
})

void t.test('a map is edited entry by entry, the others in the bytes they came in', async (t) => {
  // Labels out of order, with an unknown field in the first entry.
  const labels = '5a0b0a017a1201311a03616263' + '5a060a0161120132'
  const metadata = Buffer.from(labels, 'hex')
  const object = {
    ...pod.protobuf,
    bytes: Buffer.concat([Buffer.from([0x0a, metadata.length]), metadata]),
  }
  const after = (edit: Edit): string =>
    Buffer.from(applyEdits('protobuf', pod.gvk, object, [edit]).bytes)
      .subarray(2)
      .toString('hex')
  t.equal(
    after(set(['metadata', 'labels', 'a'], '3')),
    '5a0b0a017a1201311a03616263' + '5a060a0161120133',
  )
  t.equal(after(remove(['metadata', 'labels', 'a'])), '5a0b0a017a1201311a03616263')
})

/** After the edits, an object has the bytes that Go writes for what JSON shows of it. */
function asGoWrites(t: Test, { gvk, json, protobuf }: Sample, edits: readonly Edit[]): void {
  const inJson = applyEdits('json', gvk, json, edits)
  const object = JSON.parse(Buffer.from(inJson.bytes).toString()) as JsonObject
  const inProtobuf = applyEdits('protobuf', gvk, protobuf, edits)
  const written = objectBody('protobuf', gvk, inProtobuf)
  const what = edits.map(({ path }) => path.join('.')).join(' ')
  t.equal(written.toString('latin1'), toProtobuf(gvk, object).toString('latin1'), what)
}

void t.test('edited protobuf is encoded as by Go', async (t) => {
  for (const edits of [
    [set(['metadata', 'labels', 'aaa'], 'first'), set(['metadata', 'labels', 'zzz'], 'last')],
    [set(['metadata', 'labels', 'tier'], 'other'), remove(['metadata', 'labels', 'app'])],
    [set(['metadata', 'finalizers'], ['a', 'b'])],
    [set(['spec', 'hostUsers'], false), set(['spec', 'hostname'], 'h')],
    [remove(['spec', 'nodeName']), remove(['spec', 'tolerations', 0])],
    [set(['spec', 'containers', '*', 'ports', '*', 'hostPort'], 8080)],
    [set(['spec', 'nodeSelector'], { b: '1', a: '2' })],
  ])
    asGoWrites(t, pod, edits)
})

void t.test('a message set as a whole has the fields that Go writes even if empty', async (t) => {
  const container = ['spec', 'containers', 0]
  for (const edits of [
    [set(['spec', 'tolerations', 2], { key: 'k', operator: 'Exists', tolerationSeconds: -1 })],
    [set(['spec', 'tolerations'], [{}, { key: 'k' }])],
    [set([...container, 'livenessProbe'], { httpGet: { port: 'http' }, periodSeconds: 5 })],
    [set([...container, 'env', 0], { name: 'CPU', valueFrom: { resourceFieldRef: {} } })],
    [set(['spec', 'volumes', 0], { name: 'settings', configMap: { name: 'settings' } })],
    [each([...container, 'ports'], () => [set([], { containerPort: 80 })])],
  ])
    asGoWrites(t, pod, edits)
  asGoWrites(t, service, [set(['spec', 'ports'], [{ port: 80 }])])
})

void t.test('a message that a path creates has the fields that Go writes empty', async (t) => {
  const container = ['spec', 'containers', 0]
  for (const edits of [
    [set([...container, 'startupProbe', 'httpGet', 'path'], '/healthz')],
    [set([...container, 'startupProbe', 'periodSeconds'], 0)],
    [set(['spec', 'hostAliases', 0, 'ip'], '10.0.0.1')],
    [set(['spec', 'dnsConfig', 'options', 0, 'value'], '5')],
  ])
    asGoWrites(t, pod, edits)
})

void t.test('a removed field that Go always writes is written empty', async (t) => {
  asGoWrites(t, service, [remove(['spec', 'ports', 0, 'targetPort'])])
  asGoWrites(t, pod, [remove(['spec', 'containers', 0, 'resources']), remove(['status'])])
  asGoWrites(t, node, [remove(['status', 'nodeInfo'])])
})

void t.test('a time is set with JSON’s precision, the zero time as unset', async (t) => {
  const heartbeat = ['status', 'conditions', 0, 'lastHeartbeatTime']
  const written = (time: string): Json | undefined =>
    cursorOf(
      'protobuf',
      node.gvk,
      applyEdits('protobuf', node.gvk, node.protobuf, [set(heartbeat, time)]),
    ).json(heartbeat)
  asGoWrites(t, node, [set(heartbeat, '2026-11-21T10:16:51.987654321Z')])
  t.equal(written('2026-11-21T12:16:51.987654321+02:00'), '2026-11-21T10:16:51Z')
  t.equal(written('0001-01-01T00:00:00Z'), undefined)
})

void t.test('a value that does not fit its type is refused', async (t) => {
  const gvk = { group: '', version: 'v1', kind: 'Secret' }
  const secret = readObject('protobuf', 'object', fixture('secret-get.pb')).object
  t.throws(() => applyEdits('protobuf', gvk, secret, [set(['data', 'a'], '*')]), {
    code: 'PATH_ERROR',
  })
  for (const edit of [
    set(['spec', 'priority'], 2 ** 31),
    set(['spec', 'tolerations', 0], { keys: 'k' }),
    set(['spec', 'volumes', 0], { configMap: { nam: 'x' } }),
    set(['spec', 'securityContext'], { seLinuxOptions: { users: 'x' } }),
  ])
    t.throws(() => applyEdits('protobuf', pod.gvk, pod.protobuf, [edit]), { code: 'PATH_ERROR' })
})

void t.test('fields that no edit names keep their bytes, also unknown ones', async (t) => {
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

void t.test('an edited object keeps its metadata', async (t) => {
  const { bytes: _, ...known } = applyEdits('json', pod.gvk, pod.json, [
    set(['metadata', 'labels', 'a'], 'b'),
  ])
  const { bytes: __, ...expected } = pod.json
  t.strictSame(known, expected)
})

void t.test(
  'edits of identifying metadata and of paths not in the schema are refused',
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
      set(['spec', 'securityContext'], 1),
      set(['spec', 'securityContext'], []),
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

void t.test('set changes the last duplicate key, remove all', async (t) => {
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

void t.test('a split message is merged before it is edited', async (t) => {
  const more = Buffer.from('1205580152016e', 'hex') // spec{hostNetwork: true, nodeName: n}
  const object = { ...pod.protobuf, bytes: Buffer.concat([pod.protobuf.bytes, more]) }
  const after = applyEdits('protobuf', pod.gvk, object, [remove(['spec', 'nodeName'])])
  const cursor = cursorOf('protobuf', pod.gvk, after)
  t.equal(cursor.value(['spec', 'nodeName']), undefined)
  t.equal(cursor.value(['spec', 'hostNetwork']), true)
  t.ok(cursor.value(['spec', 'containers', 0, 'name']))
})

void t.test('atVersion() replaces the resourceVersion', async (t) => {
  for (const encoding of ['json', 'protobuf'] as const) {
    const after = atVersion(encoding, pod.gvk, pod[encoding], '123456')
    t.equal(after.resourceVersion, '123456')
    const body = objectBody(encoding, pod.gvk, after)
    t.strictSame(readObject(encoding, 'object', body).object.resourceVersion, '123456')
    t.equal(cursorOf(encoding, pod.gvk, after).label('app'), 'collector')
  }
})
