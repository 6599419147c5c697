import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { inBothEncodings } from '../../kit/filter-result.ts'
import { cursorOf, type Cursor, type Path } from '../../../src/api/codec/cursor.ts'
import { objectKind } from '../../../src/api/codec/list.ts'
import { readObject } from '../../../src/api/codec/object.ts'
import { bytesField, varint, varintType } from '../../../src/api/codec/protobuf/wire.ts'
import { schemaOf, type MessageSchema } from '../../../src/api/codec/schema/schema.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import { isList, isObject, type Json } from '../../../src/api/kube/json.ts'
import { cutList } from '../../contracts/cutter-list.ts'
import { fixture } from '../../kit/fixture.ts'

/**
 * Cursors over the objects of a fixture, and the objects as JSON, from the JSON beside it where it
 * is protobuf.
 */
function listed(name: string, encoding: Encoding): { cursor: Cursor; json: Json }[] {
  const extension = encoding === 'json' ? 'json' : 'pb'
  const { head, objects } = cutList(encoding, 'object', [fixture(`${name}.${extension}`)])
  const whole = JSON.parse(fixture(`${name}.json`).toString()) as { items: Json[] }
  return objects.map((object, at) => ({
    cursor: cursorOf(encoding, objectKind(head.gvk), object),
    json: whole.items[at] ?? null,
  }))
}

/** Each scalar of a value with its path, each list with its length. */
function* leaves(value: Json, path: Path = []): Generator<[Path, Json, number?]> {
  // No message: JSON that is stored as it came.
  if (path.at(-1) === 'fieldsV1') return
  if (isList(value)) {
    yield [path, value, value.length]
    for (const [at, element] of value.entries()) yield* leaves(element, [...path, at])
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) yield* leaves(member, [...path, key])
  } else yield [path, value]
}

const names = [
  'pods-list',
  'services-list',
  'nodes-list',
  'endpointslices-list',
  'endpoints-list',
  'events-list',
  'runtimeclasses-list',
]

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`every field that JSON has is read from ${encoding}`, async (t) => {
    for (const name of names) {
      let seen = 0
      for (const { cursor, json } of listed(name, encoding)) {
        for (const [path, value, count] of leaves(json)) {
          seen++
          const read = count === undefined ? cursor.value(path) : cursor.count(path)
          const expected = count ?? value ?? undefined
          if (read !== expected) t.equal(read, expected, `${name} ${path.join('.')}`)
        }
      }
      t.ok(seen > 10, `${name}: ${seen} fields`)
    }
  })
}

/** The paths of all fields of a kind that an object has not, down to where it ends. */
function* absent(schema: MessageSchema, json: Json, path: Path = []): Generator<Path> {
  for (const [name, field] of Object.entries(schema.fields)) {
    if (field.inline || field.map) continue
    const value = isObject(json) ? json[name] : undefined
    if (value === undefined) yield [...path, name]
    else if (field.message && isObject(value)) {
      yield* absent(field.message(), value, [...path, name])
    } else if (field.message && isList(value)) {
      for (const [at, element] of value.entries()) {
        yield* absent(field.message(), element, [...path, name, at])
      }
    }
  }
}

void t.test('fields that JSON omits have no value in protobuf', async (t) => {
  for (const name of names) {
    const { gvk } = cutList('protobuf', 'object', [fixture(`${name}.pb`)]).end
    const schema = schemaOf(objectKind(gvk))
    if (!schema) throw new Error(`${name} has no schema`)
    for (const { cursor, json } of listed(name, 'protobuf')) {
      for (const path of absent(schema, json)) {
        const read = cursor.value(path) ?? cursor.count(path)
        if (read !== 0) t.equal(read, undefined, `${name} ${path.join('.')}`)
      }
    }
    t.pass(name)
  }
})

void t.test('labels and annotations are read by their keys', async (t) => {
  for (const encoding of ['json', 'protobuf'] as const) {
    const [bare, collector] = listed('pods-list', encoding)
    t.equal(collector?.cursor.label('app'), 'collector')
    t.equal(collector?.cursor.annotation('note'), 'brackets ]}{[ and "quotes"')
    t.equal(collector?.cursor.label('none'), undefined)
    t.equal(bare?.cursor.label('app'), undefined)
    t.match(collector?.cursor, { namespace: 'plant', name: 'collector-a', kind: 'Pod' })
  }
})

void t.test('the data of config maps and secrets is read, bytes in base64', async (t) => {
  for (const name of ['configmap-get', 'secret-get']) {
    const json = JSON.parse(fixture(`${name}.json`).toString()) as Record<string, Json>
    const { gvk, object } = readObject('protobuf', 'object', fixture(`${name}.pb`))
    const cursor = cursorOf('protobuf', gvk, object)
    for (const part of ['data', 'binaryData', 'type']) {
      for (const [path, value] of leaves(json[part] ?? {}, [part])) {
        t.equal(cursor.value(path), value, path.join('.'))
      }
    }
  }
})

const json = (text: string, kind = 'Pod'): Cursor =>
  cursorOf(
    'json',
    { group: kind === 'Pod' ? '' : 'meta.k8s.io', version: 'v1', kind },
    { namespace: '', name: '', uid: '', resourceVersion: '', bytes: Buffer.from(text) },
  )

void t.test('numbers, truth, null and escapes are read from JSON', async (t) => {
  const cursor = json('{ "a" : [ 1 , -2.5e3, true, false, null, "x\\u0041\\n", {"b":{}} ] }')
  const values = [1, -2500, true, false, undefined, 'xA\n', undefined, undefined]
  t.equal(cursor.count(['a']), 7)
  for (const [at, value] of values.entries()) t.equal(cursor.value(['a', at]), value)
  t.equal(cursor.value(['a', 6, 'b', 'c']), undefined)
  t.equal(cursor.value(['a', 'b']), undefined)
  t.equal(cursor.value(['a', 0, 'b']), undefined)
  t.equal(cursor.count(['b']), 0)
  t.equal(cursor.count(['a', 0]), 0)
})

void t.test('the last of duplicate keys is read', async (t) => {
  const cursor = json('{"a":{"b":1},"a":{"b":2,"b":3}}')
  t.equal(cursor.value(['a', 'b']), 3)
})

void t.test('metadata alone has no other fields, and reading one is no error', async (t) => {
  for (const [encoding, name] of [
    ['json', 'pods-metadata.json'],
    ['protobuf', 'pods-metadata.pb'],
  ] as const) {
    const projection: Projection = 'metadata'
    const { objects, head } = cutList(encoding, projection, [fixture(name)])
    const [, collector] = objects
    if (!collector) throw new Error('no object')
    const cursor = cursorOf(encoding, objectKind(head.gvk), collector)
    t.equal(cursor.label('app'), 'collector')
    t.equal(cursor.value(['spec', 'nodeName']), undefined)
    t.equal(cursor.count(['spec', 'containers']), 0)
  }
})

void t.test('a protobuf path that is not in the schema throws', async (t) => {
  const [pod] = listed('pods-list', 'protobuf')
  for (const path of [
    ['spec', 'nodename'],
    ['specs'],
    ['spec', 'containers', 'name'],
    ['spec', 'nodeName', 'x'],
    ['spec', 'affinity', 'nope'],
    ['toString'],
    [],
    [0],
  ]) {
    t.throws(() => pod?.cursor.value(path), { code: 'PATH_ERROR' }, path.join('.'))
  }
  t.throws(() => json('{"a":[1]}').value(['a', '*']), { code: 'PATH_ERROR' })
  t.throws(() => json('{}').value([]), { code: 'PATH_ERROR' })
})

void t.test('for a kind without a schema only metadata is read', async (t) => {
  const [pod] = cutList('protobuf', 'object', [fixture('pods-list.pb')]).objects.slice(1)
  if (!pod) throw new Error('no object')
  const cursor = cursorOf('protobuf', { group: 'new', version: 'v1', kind: 'Thing' }, pod)
  t.equal(cursor.label('app'), 'collector')
  t.throws(() => cursor.value(['spec', 'nodeName']), { code: 'PATH_ERROR' })
})

void t.test('a split message is merged, and the last of a scalar wins', async (t) => {
  const { gvk, object } = readObject('protobuf', 'object', fixture('pod-get.pb'))
  // spec{hostNetwork, nodeName}, metadata{labels{app: other}}
  const spec = Buffer.from('1205580152016e', 'hex')
  const labels = Buffer.from('0a0e5a0c0a036170701205' + Buffer.from('other').toString('hex'), 'hex')
  const bytes = Buffer.concat([object.bytes, spec, labels])
  const cursor = cursorOf('protobuf', gvk, { ...object, bytes })
  t.equal(cursor.value(['spec', 'hostNetwork']), true)
  t.equal(cursor.value(['spec', 'nodeName']), 'n')
  t.equal(cursor.label('app'), 'other')
  t.ok(cursor.value(['spec', 'containers', 0, 'name']))
})

/** A pod in one of the encodings. */
function podIn(encoding: Encoding, pod: JsonObject): Cursor {
  const { gvk, ...both } = inBothEncodings({ apiVersion: 'v1', kind: 'Pod', ...pod })
  return cursorOf(encoding, gvk, both[encoding])
}

void t.test('all values at a path match JSON in both encodings', async (t) => {
  const object: JsonObject = {
    metadata: { name: 'a', labels: { app: 'web' }, finalizers: ['x', 'y'] },
    spec: {
      hostNetwork: true,
      containers: [{ name: 'main', ports: [{ containerPort: 80 }] }],
      securityContext: { supplementalGroups: [1, 2000] },
    },
  }
  for (const encoding of ['json', 'protobuf'] as const) {
    const cursor = podIn(encoding, object)
    const cases: readonly (readonly [(string | number)[], unknown])[] = [
      [['metadata', 'labels'], { app: 'web' }],
      [['metadata', 'labels', 'app'], 'web'],
      [['metadata', 'labels', 'none'], undefined],
      [['metadata', 'annotations'], undefined],
      [
        ['metadata', 'finalizers'],
        ['x', 'y'],
      ],
      [['metadata', 'finalizers', 1], 'y'],
      [['spec', 'containers', 0, 'ports', 0], { containerPort: 80 }],
      [['spec', 'containers', 3], undefined],
      [
        ['spec', 'securityContext', 'supplementalGroups'],
        [1, 2000],
      ],
      [['spec', 'securityContext', 'supplementalGroups', 1], 2000],
      [['spec', 'hostNetwork'], true],
      [['spec', 'hostPID'], undefined],
    ]
    for (const [path, expected] of cases)
      t.match(cursor.json(path), expected, `${encoding} ${path.join('.')}`)
    const renamed = { ...object, metadata: { name: 'b', labels: { app: 'db' } } }
    const other = podIn(encoding, renamed)
    t.equal(cursor.digest(['spec']), other.digest(['spec']))
    t.not(cursor.digest(['metadata', 'labels']), other.digest(['metadata', 'labels']))
    t.equal(cursor.digest(['spec', 'volumes']), '')
    t.equal(cursor.has(['metadata', 'labels']), true, 'a map')
    t.equal(cursor.has(['metadata', 'annotations']), false)
    t.equal(cursor.value(['metadata', 'labels']), undefined)
    t.equal(cursor.count(['metadata', 'labels']), 0)
    const many = { ...object, metadata: { name: 'x'.repeat(1024 * 1024) } }
    const large = podIn(encoding, many)
    t.throws(() => large.json(['metadata']), { code: 'MALFORMED_BODY' })
  }
  t.throws(() => podIn('protobuf', object).json(['spec', 'x']), {
    code: 'PATH_ERROR',
  })
})

/** A pod whose spec (field 2) holds these bytes. */
const podOf = (spec: Buffer): Cursor =>
  cursorOf(
    'protobuf',
    { group: '', version: 'v1', kind: 'Pod' },
    { namespace: '', name: '', uid: '', resourceVersion: '', bytes: bytesField(2, spec) },
  )

void t.test('a pointer that JSON shows as null has no value in protobuf either', async (t) => {
  const livenessProbe = { grpc: { port: 80, service: null } }
  const object: JsonObject = { spec: { containers: [{ name: 'a', livenessProbe }] } }
  for (const encoding of ['json', 'protobuf'] as const) {
    const cursor = podIn(encoding, object)
    const path = ['spec', 'containers', 0, 'livenessProbe', 'grpc']
    t.equal(cursor.value([...path, 'port']), 80, encoding)
    t.equal(cursor.value([...path, 'service']), undefined, encoding)
    t.equal(cursor.has([...path, 'service']), false, encoding)
  }
})

void t.test('a value of another wire type is refused, by whichever way it is read', async (t) => {
  for (const [path, spec] of [
    [['spec', 'nodeName'], '5005'], // a number
    [['spec', 'hostNetwork'], '5a0101'], // bytes
    [['spec', 'securityContext', 'runAsUser'], '7005'], // a number in place of a message
    [['spec', 'activeDeadlineSeconds'], '290000000000000001'], // 64 bits of fixed length
    [['spec', 'nodeSelector', 'zone'], '3a020801'], // a map's key that is a number
  ] as const) {
    const pod = podOf(Buffer.from(spec, 'hex'))
    t.throws(() => pod.value(path), { code: 'MALFORMED_BODY' }, path.join('.'))
    t.throws(() => pod.json(path), { code: 'MALFORMED_BODY' }, path.join('.'))
  }
})

void t.test('packed numbers are read up to a limit, if the last one ends', async (t) => {
  const groups = ['spec', 'securityContext', 'supplementalGroups']
  const packed = (numbers: Buffer): Cursor => podOf(bytesField(14, bytesField(4, numbers)))
  t.equal(packed(Buffer.alloc(500_000, 1)).count(groups), 500_000)
  t.throws(() => packed(Buffer.alloc(2_000_001, 1)).count(groups), {
    code: 'MALFORMED_BODY',
    message: /more than 2000000 values/,
  })
  t.strictSame(packed(Buffer.from('01ac02', 'hex')).json(groups), [1, 300])
  for (const numbers of ['0180', `${'ff'.repeat(10)}01`]) {
    const broken = packed(Buffer.from(numbers, 'hex'))
    t.throws(() => broken.count(groups), { code: 'MALFORMED_BODY' })
    t.throws(() => broken.json(groups), { code: 'MALFORMED_BODY' })
  }
})

void t.test('a time that RFC 3339 cannot write is refused', async (t) => {
  const gvk = { group: '', version: 'v1', kind: 'Pod' }
  const timed = (time: Buffer): Cursor => {
    const bytes = bytesField(1, bytesField(8, time))
    return cursorOf('protobuf', gvk, {
      namespace: '',
      name: '',
      uid: '',
      resourceVersion: '',
      bytes,
    })
  }
  const varintField = (number: number, value: number): Buffer =>
    Buffer.concat([varint(number * 8 + varintType), varint(value)])
  const path = ['metadata', 'creationTimestamp']
  t.equal(timed(varintField(1, 253_402_300_799)).value(path), '9999-12-31T23:59:59Z')
  t.equal(timed(varintField(1, -62_135_596_800)).value(path), undefined, "Go's zero time")
  for (const time of [
    varintField(1, 253_402_300_800),
    varintField(1, -62_135_596_801),
    Buffer.concat([varintField(1, 1), varintField(2, 1_000_000_000)]),
  ]) {
    t.throws(() => timed(time).value(path), { code: 'MALFORMED_BODY' })
    t.throws(() => timed(time).json(path), { code: 'MALFORMED_BODY' })
  }
})

const mentioning = (encoding: Encoding, text: string): Cursor => {
  const pod = {
    metadata: { name: 'web', namespace: 'default', annotations: { 'a/b': 'c' } },
    spec: { containers: [{ name: 'web', env: [{ name: text, value: 'here' }] }] },
  }
  return podIn(encoding, pod)
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`mentions() finds keys and values of ${encoding}`, async (t) => {
    const pod = mentioning(encoding, 'KUBERNETES_SERVICE_HOST')
    t.ok(pod.mentions('KUBERNETES_SERVICE_'))
    t.ok(pod.mentions('a/b'))
    t.ok(pod.mentions('web'))
    t.notOk(pod.mentions('KUBERNETES_SERVICE_PORT'))
    t.notOk(pod.mentions('c/b'))
    for (const name of ['"quoted"', 'back\\slash', 'a\nline', 'ünïcode', '<&>']) {
      t.ok(mentioning(encoding, name).mentions(name), name)
    }
  })
}

void t.test('mentions() finds text with JSON escapes', async (t) => {
  const read = (text: string): Cursor => {
    const bytes = Buffer.from(`{"kind":"Pod","metadata":{"name":"web"},"spec":{"x":"${text}"}}`)
    const object = { namespace: '', name: 'web', uid: '', resourceVersion: '', bytes }
    return cursorOf('json', { group: '', version: 'v1', kind: 'Pod' }, object)
  }
  t.ok(read('\\u004bUBERNETES').mentions('KUBERNETES'))
  t.ok(read('KUBERNETE\\u0053').mentions('KUBERNETES'))
  t.ok(read('a\\/b').mentions('a/b'))
  t.notOk(read('a\\nb').mentions('KUBERNETES'))
})
