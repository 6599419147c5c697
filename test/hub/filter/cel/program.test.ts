import t from 'tap'
import { cursorOf } from '../../../../src/api/codec/cursor.ts'
import { schemaOf } from '../../../../src/api/codec/schema/schema.ts'
import { compile, type Program } from '../../../../src/hub/filter/cel/program.ts'
import { any, type Shape } from '../../../../src/hub/filter/cel/shape.ts'
import { Failure, listOf, type Value } from '../../../../src/hub/filter/cel/value.ts'
import type { Json, JsonObject } from '../../../../src/api/kube/json.ts'
import { encoded } from '../../../kit/encoded.ts'

const gvk = { group: '', version: 'v1', kind: 'Pod' }
const pod: Shape = { kind: 'message', schema: schemaOf(gvk) ?? { name: '', fields: {} } }

const object: JsonObject = {
  metadata: {
    name: 'web',
    namespace: 'default',
    labels: { app: 'web', 'example.com/tier': 'front', größe: 'ö' },
    creationTimestamp: '2026-01-02T03:04:05Z',
  },
  spec: {
    nodeName: 'edge-1',
    hostNetwork: true,
    containers: [
      {
        name: 'main',
        image: 'a:1',
        ports: [{ containerPort: 80 }, { containerPort: 443 }],
        resources: {},
      },
      { name: 'side', image: 'b:2', resources: {} },
    ],
    volumes: [{ name: 'tmp', emptyDir: {} }],
    terminationGracePeriodSeconds: 30,
  },
  status: {},
}

const known = {
  node: { name: 'edge-1', labels: { zone: 'a' }, annotations: {} },
  pool: null,
}

function program(text: string, shapes: readonly Shape[] = [pod]): Program {
  const compiled = compile(text, undefined, shapes)
  if ('mistakes' in compiled)
    throw new Error(`${text}: ${compiled.mistakes.map(({ what }) => what).join('; ')}`)
  return compiled.program
}

/** Its value in JSON and in protobuf, which must be the same. */
function valueOf(text: string, of = object): unknown {
  const compiled = program(text)
  const [json, protobuf] = (['json', 'protobuf'] as const).map((encoding) =>
    plain(compiled.evaluate(cursorOf(encoding, gvk, encoded(encoding, gvk, of)), known)),
  )
  t.strictSame(protobuf, json, `${text} in protobuf and in JSON`)
  return json
}

function plain(value: Value): unknown {
  if (value instanceof Failure) return `failure: ${value.reason}`
  const list = listOf(value)
  return list ? Array.from({ length: list.length }, (_, at) => plain(list.at(at))) : value
}

function mistakesIn(text: string, shapes: readonly Shape[] = [pod]): readonly string[] {
  const compiled = compile(text, ['bool'], shapes)
  return 'mistakes' in compiled ? compiled.mistakes.map(({ what, at }) => `${at}: ${what}`) : []
}

void t.test('expressions have the values of CEL, in both encodings', async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    [`object.metadata.name == 'web'`, true],
    [`object.metadata.labels['app'] + '/' + object.metadata.namespace`, 'web/default'],
    [`object.metadata.labels.app`, 'web'],
    [`object['metadata']['labels']['example.com/tier'].startsWith('fr')`, true],
    [`'app' in object.metadata.labels`, true],
    [`'none' in object.metadata.labels`, false],
    [`object.metadata.labels.exists(k, k.startsWith('example.com/'))`, true],
    [`object.metadata.labels.all(k, object.metadata.labels[k] != '')`, true],
    [`size(object.metadata.labels)`, 3n],
    [`size(object.metadata.labels['größe'])`, 1n],
    [`has(object.spec.hostNetwork) && object.spec.hostNetwork`, true],
    [`has(object.spec.hostPID)`, false],
    [`has(object.spec.volumes)`, true],
    [`has(object.spec.initContainers)`, false],
    [`has(object.metadata.annotations)`, false],
    [`has(object.metadata.labels)`, true],
    [`has(object.metadata.labels.app)`, true],
    [`has(object.spec.containers[0].ports) && !has(object.spec.containers[1].ports)`, true],
    [
      `has((object.spec.hostNetwork ? object.spec.containers[0] : object.spec.containers[1]).ports)`,
      true,
    ],
    [`object.spec.containers.exists(c, c.image == 'b:2')`, true],
    [`object.spec.containers.all(c, has(c.ports))`, false],
    [`object.spec.containers.exists_one(c, has(c.ports))`, true],
    [`object.spec.containers.filter(c, has(c.ports)).map(c, c.name)`, ['main']],
    [`object.spec.containers.map(c, has(c.ports), c.ports.map(p, p.containerPort))`, [[80n, 443n]]],
    [
      `object.spec.containers.exists(c, has(c.ports) && c.ports.exists(p, p.containerPort > 400))`,
      true,
    ],
    [`object.spec.containers[1].name`, 'side'],
    [`object.spec.containers[size(object.spec.containers) - 1].name`, 'side'],
    [`object.spec.volumes.exists(v, has(v.emptyDir))`, true],
    [`object.spec.terminationGracePeriodSeconds * 2 + 1`, 61n],
    [`7 / 2`, 3n],
    [`-7 % 3`, -1n],
    [`7.0 / 2.0`, 3.5],
    [`dyn(1) == 1.0 && dyn(1) < 1.5 && 'a' < 'b' && false < true`, true],
    [`object.metadata.creationTimestamp < '2026-02-01T00:00:00Z'`, true],
    [`object.spec.nodeName == node.name && node.labels['zone'] in ['a', 'b']`, true],
    [`pool == null`, true],
    [`pool != null && pool.hostNetwork`, false],
    [`object.spec.hostNetwork ? 'host' : 'pod'`, 'host'],
    [`!(object.metadata.name in ['a', 'b'])`, true],
    [`'a,b,c'.split(',')`, ['a', 'b', 'c']],
    [`'a,b,c'.split(',', 2).join('|')`, 'a|b,c'],
    [`' ABc '.trim().lowerAscii() + 'x'.upperAscii()`, 'abcX'],
    [`'ab'.contains('b') && 'ab'.endsWith('b')`, true],
    [`int('12') + int(3.9) + 1`, 16n],
    [`string(12) + string(true) + string(1.5)`, '12true1.5'],
    [`double('1e3')`, 1000],
    [`bool('true')`, true],
    [`[1, 2, 3] + [4]`, [1n, 2n, 3n, 4n]],
    [`[[1, 2]] == [[1, 2.0]]`, true],
    [`{'a': 1}['a'] + {'a': 1}.a`, 2n],
    [`dyn(1) == 'a'`, false],
  ]
  for (const [text, expected] of cases) t.strictSame(valueOf(text), expected, text)
})

void t.test('a missing field has no value, unless has() asks or the rest decides', async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    [`object.spec.hostPID`, 'failure: no such key: spec.hostPID'],
    [`object.metadata.labels['x'] == 'y'`, 'failure: no such key: metadata.labels.x'],
    [`object.metadata.annotations['x'] == 'y'`, 'failure: no such key: metadata.annotations.x'],
    [`object.metadata.annotations.exists(k, true)`, 'failure: no such key: metadata.annotations'],
    [`'x' in object.metadata.annotations`, 'failure: no such key: metadata.annotations'],
    [`has(object.spec.securityContext.runAsUser)`, 'failure: no such key: spec.securityContext'],
    [`object.metadata.labels['x'] == 'y' || object.metadata.name == 'web'`, true],
    [`object.metadata.name == 'web' || object.metadata.labels['x'] == 'y'`, true],
    [`object.metadata.labels['x'] == 'y' && object.metadata.name == 'other'`, false],
    [`object.metadata.labels['x'] == 'y' && true`, 'failure: no such key: metadata.labels.x'],
    [`object.spec.containers.exists(c, c.ports.exists(p, p.containerPort == 80))`, true],
    [`object.spec.containers.all(c, size(c.ports) > 1)`, 'failure: no such key: ports'],
    [`object.spec.containers[7].name`, 'failure: no such key: spec.containers.7.name'],
    [`object.spec.containers[size(object.spec.containers)].name`, 'failure: no such element: 2'],
    [`object.spec.containers[-1].name`, 'failure: no such element: -1'],
    [`1 / 0`, 'failure: division by zero'],
    [`9223372036854775807 + 1`, 'failure: integer overflow'],
    [`object.metadata.name + 1`, 'failure: no such overload: string + int'],
    [`object.metadata.name > 1`, 'failure: no such overload: string > int'],
    [`int(object.metadata.name)`, 'failure: no such overload: int(string)'],
    [`!object.metadata.name`, 'failure: no such overload: !string'],
    [`object.metadata.name ? 1 : 2`, 'failure: no such overload: string ? :'],
  ]
  for (const [text, expected] of cases) t.strictSame(valueOf(text), expected, text)
  const unknown = program('node.name == object.spec.nodeName')
  const cursor = cursorOf('json', gvk, encoded('json', gvk, object))
  t.match(unknown.evaluate(cursor, { node: undefined, pool: undefined }), {
    reason: 'node is not known',
  })
})

void t.test('empty lists and nulls count as absent, as in protobuf', async (t) => {
  const text = `{"metadata":{"name":"a","labels":null},"spec":{"volumes":[],"containers":[{"name":"x","ports":[],"env":null}]}}`
  const at = { namespace: '', name: 'a', uid: '', resourceVersion: '' }
  const cursor = () => cursorOf('json', gvk, { ...at, bytes: Buffer.from(text) })
  for (const field of ['metadata.labels', 'spec.volumes'])
    t.equal(program(`has(object.${field})`).evaluate(cursor(), known), false, field)
  const inside = `object.spec.containers.exists(c, has(c.ports) || has(c.env))`
  t.equal(program(inside).evaluate(cursor(), known), false)
})

void t.test('a path to an unknown field is refused when it is read', async (t) => {
  t.strictSame(mistakesIn(`object.spec.hostnetwork`), [
    '0: object.spec.hostnetwork: no field hostnetwork is known in PodSpec',
  ])
  t.strictSame(mistakesIn(`object.spec.containers.exists(c, c.img == '')`), [
    '33: c.img: no field img is known in Container',
  ])
  t.match(mistakesIn(`has(object.spec.nothing)`), [/no field nothing is known in PodSpec/])
  t.match(mistakesIn(`object.spec['nothing'] == 1`), [/no field nothing/])
  t.match(mistakesIn(`object.spec.containers.filter(c, true)[0].img == ''`), [/no field img/])
  t.match(mistakesIn(`(has(object.spec.x) || object.spec.y) && true`), [/field x/, /field y/])
  t.match(mistakesIn(`object.metadata.managedFields[0].fieldsV1['f:x'] == 1`), [/raw JSON/])
  t.match(mistakesIn(`object.kind == 'Pod'`), [/object.kind is absent in lists/])
  t.match(mistakesIn(`object.metadata.name.first == ''`), [/no scalar has fields/])
  t.strictSame(mistakesIn(`object.spec.anything.goes == 1`, [any]), [], 'but of a custom resource')
  t.strictSame(mistakesIn(`object.metadata.x == 1`, [pod, any]), [], 'or where one version has it')
})

void t.test('a value that may have unknown fields is not usable as a whole', async (t) => {
  for (const text of [
    `object.spec == object.spec`,
    `object.spec.containers == []`,
    `object in [object]`,
    `object.spec.containers[0] in object.spec.containers`,
    `size(object.spec) > 1`,
    `object.exists(k, true)`,
    `[object.spec, object.status].exists(s, has(s.phase))`,
    `(true ? object.spec : object.status).phase == ''`,
    `object.spec.containers.map(c, c) == []`,
    `object['spe' + 'c'] == 1`,
    `object.spec['node' + 'Name'] == 1`,
  ])
    t.not(mistakesIn(text).length, 0, text)
  t.strictSame(mistakesIn(`[object.spec.containers[0]].exists(c, c.name == '')`), [])
  t.strictSame(
    mistakesIn(`(true ? object.spec.containers[0] : object.spec.containers[1]).name == ''`),
    [],
  )
})

void t.test('mistakes are reported with their position', async (t) => {
  t.match(mistakesIn(`object.metadata.name = 'a'`), [/^21: Unexpected character/])
  t.match(mistakesIn(`object.metadata.name == 'a' &&`), [/^\d+: Unexpected token: EOF/])
  t.match(mistakesIn(`object.metadata.name == pod.name`), [
    /^24: pod is not known; there are object, node and pool/,
  ])
  t.match(mistakesIn(`1 == 'a'`), [/^0: no such overload: int == string/])
  t.strictSame(mistakesIn(`'text'`), ['0: has type string, but must be bool'])
  t.match(mistakesIn(`b'x' == 1u`), [/bytes and unsigned/, /bytes and unsigned/])
  t.match(mistakesIn(`timestamp('x') == now()`), [/^0: timestamp\(\) is not available/, /now\(\)/])
  t.match(mistakesIn(`has(object.spec['x'])`), [/^0: has\(\)/])
  t.match(mistakesIn(`'a'.startsWith()`), [/startsWith takes 1 arguments/])
})

void t.test('an expression of unbounded cost is refused', async (t) => {
  t.match(mistakesIn(`object.metadata.name.matches('(a+)+$')`), [
    /matches\(\) is not available: .* no bound/,
  ])
  const list = 'object.spec.containers'
  t.strictSame(mistakesIn(`${list}.exists(a, ${list}.exists(b, a.name == b.name))`), [])
  t.match(mistakesIn(`${list}.exists(a, ${list}.exists(b, ${list}.exists(c, c.name == b.name)))`), [
    /exists is nested in more than 1 other/,
  ])
  t.match(mistakesIn(`'${'a'.repeat(4100)}' == ''`), [/longer than 4096 characters/])
  t.match(mistakesIn(`${'('.repeat(500)}true${')'.repeat(500)}`), [/maxDepth/])
  t.match(mistakesIn(`${'!'.repeat(4000)}true`), [/maxAstNodes/])
  t.match(mistakesIn(Array.from({ length: 600 }, () => 'true').join('&&')), [/maxAstNodes/])
  t.match(mistakesIn(`1 in [${Array.from({ length: 200 }, () => '1').join()}]`), [
    /maxListElements/,
  ])
})

void t.test('the keys of a map cost something each time that they are gathered', async (t) => {
  const keys = (count: number): JsonObject => ({
    metadata: { name: 'a' },
    data: Object.fromEntries(Array.from({ length: count }, (_, at) => [`key-${at}`, ''])),
  })
  const attempt = (text: string, of: JsonObject): unknown =>
    program(text, [any]).evaluate(cursorOf('json', gvk, encoded('json', gvk, of)), known)
  const costly = { code: 'TOO_COSTLY' }
  t.equal(attempt(`object.data.exists(key, key == 'none')`, keys(5000)), false)
  t.equal(attempt('object.data.all(key, size(object.data) == 100)', keys(100)), true)
  t.throws(() => attempt('object.data.all(key, size(object.data) > 0)', keys(5000)), costly)
  t.throws(() => attempt(`object.data.all(key, object.data != {'a': ''})`, keys(5000)), costly)
  const few = `[${Array.from({ length: 50 }, (_, at) => at).join()}]`
  t.throws(() => attempt(`${few}.all(x, object.data.exists(key, true))`, keys(5000)), costly)
})

void t.test('a costly evaluation is broken off, whatever surrounds it', async (t) => {
  const many = (count: number, of: (at: number) => Json): JsonObject => ({
    metadata: { name: 'a' },
    spec: { list: Array.from({ length: count }, (_, at) => of(at)) },
  })
  const attempt = (text: string, of: JsonObject): unknown =>
    program(text, [any]).evaluate(cursorOf('json', gvk, encoded('json', gvk, of)), known)
  const costly = { code: 'TOO_COSTLY' }
  const list = 'object.spec.list'
  t.equal(attempt(`${list}.exists(x, x == 'none')`, many(5000, String)), false)
  const each = `${list}.exists(x, x == 'none')`
  t.equal(attempt(`true || ${each}`, many(50_000, String)), true)
  t.throws(() => attempt(`${each} || true`, many(50_000, String)), costly)
  t.throws(
    () => attempt(`${list}.exists(x, ${list}.exists(y, x + y == 'none'))`, many(1000, String)),
    costly,
  )
  t.throws(() => attempt(`${list} == ${list}.map(x, x)`, many(40_000, String)), costly)
  const long = many(200, () => 'x'.repeat(4000))
  t.throws(() => attempt(`${list}.all(x, ${list}.all(y, !x.contains(y + 'z')))`, long), costly)
  t.match(attempt(`${list}.map(x, x).join('')`, long), { reason: /more than 65536 characters/ })
  const doubled = `(${list}[0] + ${list}[0])`
  t.match(
    attempt(
      `${doubled} + ${doubled} + ${doubled} + ${doubled} + ${doubled} + ${doubled} + ${doubled} + ${doubled} + ${doubled} == ''`,
      long,
    ),
    {
      reason: /more than 65536 characters/,
    },
  )
  t.throws(
    () =>
      attempt(
        `'x'.split('') == ${list}[0].split('')`,
        many(1, () => 'y'.repeat(60_000)),
      ),
    costly,
  )
  t.throws(
    () =>
      attempt(
        `size(${list}) > 1`,
        many(300, () => 'x'.repeat(4000)),
      ),
    { code: 'LARGE_VALUE' },
  )
})

void t.test('names of JavaScript’s prototypes are keys like any other', async (t) => {
  const text = `{"metadata":{"name":"a"},"spec":{"__proto__":{"polluted":true},"constructor":"c"}}`
  const at = { namespace: '', name: 'a', uid: '', resourceVersion: '' }
  const value = (expression: string): unknown =>
    plain(
      program(expression, [any]).evaluate(
        cursorOf('json', gvk, { ...at, bytes: Buffer.from(text) }),
        known,
      ),
    )
  t.equal(value(`object.spec.toString == 1`), 'failure: no such key: spec.toString')
  t.equal(value(`object.spec.exists(k, k == 'toString')`), false)
  t.equal(value(`object.spec.constructor`), 'c')
  t.equal(value(`node.labels.exists(k, k == 'valueOf') || has(node.labels.valueOf)`), false)
  t.equal(value(`{'a': 1}.exists(k, k == '__proto__')`), false)
})
