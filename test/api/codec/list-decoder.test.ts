import t from 'tap'
import { listDecoder } from '../../../src/api/codec/list-decoder.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import { cutList, listCutterContract } from '../../contracts/cutter-list.ts'
import { fixture } from '../../kit/fixture.ts'

const bodies: readonly (readonly [string, Projection])[] = [
  ['pods-list.json', 'object'],
  ['pods-list.pb', 'object'],
  ['pods-empty.json', 'object'],
  ['pods-empty.pb', 'object'],
  ['pods-page-1.json', 'object'],
  ['custom-list.json', 'object'],
  ['pods-metadata.json', 'metadata'],
  ['pods-metadata.pb', 'metadata'],
]

const encodingOf = (name: string): Encoding => (name.endsWith('.pb') ? 'protobuf' : 'json')

for (const [name, projection] of bodies) {
  listCutterContract(t, encodingOf(name), projection, name, fixture(name))
}

const cutJson = (text: string, projection: Projection = 'object') =>
  cutList('json', projection, [Buffer.from(text)])

const names = (text: string, projection?: Projection) =>
  cutJson(text, projection).objects.map(({ name }) => name)

const list = (items: string): string =>
  `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":${items}}\n`

const malformed = { code: 'MALFORMED_BODY' }

void t.test('an object carried over does not retain its chunks', async (t) => {
  const cutter = listDecoder('json', 'object')
  const start = list(`[{"metadata":{"name":"a"}}`).slice(0, -2)
  cutter.push([Buffer.from(start)])
  cutter.push([Buffer.from(`${' '.repeat(100_000)},{"metadata":{"name":"b",`)])
  const { batch } = cutter.push([Buffer.from(`"uid":"u"}}${' '.repeat(100_000)}`)])
  t.equal(batch?.objects[0]?.name, 'b')
  t.ok((batch?.objects[0]?.bytes.buffer.byteLength ?? Infinity) < 100_000)
})

void t.test('a carried part of an object is copied from its chunk', async (t) => {
  const cutter = listDecoder('json', 'object')
  const chunk = Buffer.alloc(64 * 1024, ' ')
  chunk.write(list('[{"metadata":{"name":"a'), chunk.length - 200)
  const open = chunk.indexOf('}\n', chunk.length - 200)
  const first = chunk.subarray(chunk.length - 200, open)
  cutter.push([first])
  chunk.fill('x')
  t.equal(cutter.push([Buffer.from('b"}}')]).batch?.objects[0]?.name, 'ab')
})

void t.test('the kind is that of the first item until the list’s own arrives', async (t) => {
  const body = fixture('custom-list.json')
  const half = body.indexOf('"kind":"PumpList"')
  const { head, batch } = listDecoder('json', 'object').push([body.subarray(0, half)])
  t.equal(head?.gvk.kind, 'PumpList')
  t.equal(batch?.objects.length, 1)
})

void t.test('a list’s own kind overrides that of its items at the end', async (t) => {
  const item = '{"apiVersion":"a/v1","kind":"Pump","metadata":{"name":"p"}}'
  const { head, end } = cutJson(`{"apiVersion":"a/v1","items":[${item}],"kind":"Pumps"}`)
  t.equal(head.gvk.kind, 'PumpList')
  t.equal(end.gvk.kind, 'Pumps')
})

void t.test(
  'a list whose kind is said nowhere before the second object is malformed',
  async (t) => {
    const late = '{"items":[{"metadata":{"name":"a"}}],"kind":"PodList","apiVersion":"v1"}'
    t.throws(() => cutJson(late), malformed)
    const raw = field(0x12, field(0x12, field(0x0a, field(0x0a, 'a'))))
    t.throws(() => cutList('protobuf', 'object', [bytes('k8s\0', raw, typeMeta)]), malformed)
    const empty = '{"items":[],"kind":"PodList","apiVersion":"v1"}'
    t.equal(cutJson(empty).head.gvk.kind, 'PodList')
  },
)

void t.test('a long list may come in one chunk', async (t) => {
  const objects = `[${'{},'.repeat(300_000)}{"a":"${'x'.repeat(9_000_000)}"},{"a":"${'x'.repeat(9_000_000)}"}]`
  t.equal(cutJson(list(objects)).objects.length, 300_002)
})

void t.test('white space without an end is refused, wherever it stands', async (t) => {
  const blank = Buffer.alloc(1024 * 1024, ' ')
  for (const begun of ['[', '[{}', '[{},', '[{},{}']) {
    const cutter = listDecoder('json', 'object')
    cutter.push([Buffer.from(`{"kind":"PodList","apiVersion":"v1","items":${begun}`)])
    t.throws(() => {
      for (let i = 0; i < 64; i++) cutter.push([blank])
    }, malformed)
  }
})

listCutterContract(
  t,
  'json',
  'object',
  'a list that begins on a new line',
  Buffer.from(list('[\r\n{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}\r\n]')),
)

void t.test('"items":null is an empty list, and so is an empty array', async (t) => {
  for (const items of ['null', '[]', '[ ]']) {
    for (let at = 0; at < list(items).length; at++) {
      const text = list(items)
      const chunks = [Buffer.from(text.slice(0, at)), Buffer.from(text.slice(at))]
      const { objects, body, end } = cutList('json', 'object', chunks)
      t.strictSame(objects, [])
      t.equal(body.toString(), text)
      t.equal(end.meta.resourceVersion, '7')
      t.equal(Buffer.concat([...end.tail]).toString(), items === 'null' ? '}\n' : ']}\n')
    }
  }
})

void t.test('escapes in names are decoded, and in keys', async (t) => {
  t.strictSame(names(list('[{"metadata":{"name":"a\\u0062\\"c"}}]')), ['ab"c'])
  t.strictSame(names(list('[{"met\\u0061data":{"n\\u0061me":"a"}}]')), ['a'])
  t.strictSame(names(list('[{"metadata":{"name":"gr\u00fc\u00dfe \ud83d\ude00"}}]')), ['grüße 😀'])
})

void t.test('the last duplicate key wins', async (t) => {
  t.strictSame(names(list('[{"metadata":{"name":"a","name":"b"}}]')), ['b'])
  t.strictSame(names(list('[{"metadata":{"name":"a"},"metadata":{"name":"b"}}]')), ['b'])
  t.strictSame(names(list('[{"metadata":{"name":"a"},"metadata":null}]')), [''])
  const twice = '{"kind":"A","kind":"B","apiVersion":"v1","items":[]}'
  t.equal(cutJson(twice).head.gvk.kind, 'B')
})

void t.test('a list’s other members are passed on as text', async (t) => {
  const { end } = cutJson('{"kind":"L","apiVersion":"v1","a":[1, {"b":2}],"items":[],"c":"d"}')
  t.equal(end.extra, '"a":[1, {"b":2}],"c":"d"')
})

void t.test('bytes that are no list in JSON are malformed', async (t) => {
  const bodies = [
    '[]',
    'null',
    'no',
    '{"items":[]}',
    '{"kind":"PodList","apiVersion":"v1","metadata":{}}',
    list('{}'),
    list('"x"'),
    list('nul'),
    list('[1]'),
    list('[null]'),
    list('[{}{}]'),
    list('[{},]'),
    list('[,{}]'),
    list('[{"a":[}]}]'),
    list('[{]'),
    list('[{"a" 1}]'),
    list('[{1:2}]'),
    `${list('[]')}x`,
    `${list('[]')}{}`,
    list('[],"items":[]'),
    list('null,"items":[]'),
    '{,"items":[]}',
    '{"kind":"PodList",,"items":[]}',
    '{"kind" "PodList"}',
    '{"kind":}',
    '{"metadata":{"a":tru},"items":[]}',
  ]
  for (const body of bodies) t.throws(() => cutJson(body), malformed, body)
})

void t.test('nesting is bounded where the API server bounds it', async (t) => {
  const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`
  t.equal(cutJson(list(`[{"a":${nested(9_999)}}]`)).objects.length, 1)
  t.throws(() => cutJson(list(`[{"a":${nested(10_000)}}]`)), malformed)
})

void t.test(
  'an object is no larger than 16 MiB, and nothing around the objects either',
  async (t) => {
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    for (const start of ['[{"a":"', '[],"a":"', '[{"metadata":{"name":"a"}}', 'null,"a":"']) {
      const cutter = listDecoder('json', 'object')
      cutter.push([Buffer.from(list(start).slice(0, -2))])
      const filler = start.endsWith('"') ? chunk : Buffer.alloc(chunk.length, ' ')
      t.throws(() => {
        for (let at = 0; at < 18; at++) cutter.push([filler])
        cutter.end()
      }, malformed)
    }
  },
)

const bytes = (...parts: (string | number | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part))),
  )

/** A field with a length below 128. */
const field = (tag: number, ...parts: (string | number | Buffer)[]): Buffer => {
  const value = bytes(...parts)
  return bytes(tag, value.length, value)
}

const typeMeta = field(0x0a, field(0x0a, 'v1'), field(0x12, 'PodList'))
const pod = (name: string): Buffer => field(0x12, field(0x0a, field(0x0a, name)))

void t.test('fields of a protobuf list may come in any order, unknown ones too', async (t) => {
  const unknown = field(0x7a, 'unknown')
  const fixed = bytes(0x79, '12345678', 0x7d, '1234', 0x78, 0x96, 0x01)
  const meta = field(0x0a, field(0x12, '9'), field(0x1a, 'token'))
  const raw = bytes(0x12, 0x80 | 70, 0x00)
  const inside = bytes(unknown, pod('a'), fixed, pod('b'), meta, unknown)
  raw[1] = inside.length | 0x80
  const body = bytes('k8s\0', field(0x1a), typeMeta, raw, inside, unknown, fixed)
  const { objects, end, head } = cutList('protobuf', 'object', [body])
  t.strictSame(
    objects.map(({ name }) => name),
    ['a', 'b'],
  )
  t.strictSame(end.meta, { resourceVersion: '9', continue: 'token' })
  t.equal(head.gvk.kind, 'PodList')
  t.ok(Buffer.concat([...head.bytes]).equals(bytes('k8s\0', field(0x1a), typeMeta, raw, unknown)))
  listCutterContract(t, 'protobuf', 'object', 'a list in an unusual order', body)
})

void t.test('items leave while the rest of a protobuf list is still to come', async (t) => {
  const body = fixture('pods-list.pb')
  const cutter = listDecoder('protobuf', 'object')
  const { head, batch } = cutter.push([body.subarray(0, 2_500)])
  t.equal(head?.gvk.kind, 'PodList')
  t.equal(batch?.objects[0]?.name, 'bare')
})

void t.test('a message that repeats its metadata is read as decoders read it', async (t) => {
  const item = field(
    0x12,
    field(0x0a, field(0x0a, 'a'), field(0x32, '1')),
    field(0x0a, field(0x0a, 'b')),
  )
  const body = bytes('k8s\0', typeMeta, field(0x12, item))
  t.match(cutList('protobuf', 'object', [body]).objects, [{ name: 'b', resourceVersion: '1' }])
})

void t.test('bytes that are no list in protobuf are malformed', async (t) => {
  const huge = bytes(0x12, 0xff, 0xff, 0xff, 0xff, 0x0f)
  const bodies = [
    bytes(''),
    bytes('k8s\0'),
    bytes('k9s\0', typeMeta),
    bytes('k8s\0', typeMeta),
    bytes('k8s\0', field(0x12)),
    bytes('k8s\0', field(0x0a, field(0x0a, 'v1')), field(0x12)),
    bytes('k8s\0', typeMeta, field(0x12), field(0x12)),
    bytes('k8s\0', typeMeta, field(0x12, 0x12, 5, 'abc')),
    bytes('k8s\0', typeMeta, field(0x12, 0x12, 4, 0x0a, 0), field(0x1a)),
    bytes('k8s\0', typeMeta, field(0x12, 0x10, 5)),
    bytes('k8s\0', typeMeta, field(0x12, 0x13)),
    bytes('k8s\0', typeMeta, field(0x12, 0x02, 0x00)),
    bytes('k8s\0', typeMeta, field(0x12, field(0x12, 0x0a, 9))),
    bytes('k8s\0', typeMeta, huge, huge),
    bytes('k8s\0', typeMeta, 0x12, Buffer.alloc(11, 0xff)),
    bytes('k8s\0', huge.fill(0x0a, 0, 1)),
  ]
  for (const body of bodies) {
    t.throws(() => cutList('protobuf', 'object', [body]), malformed, body.toString('hex'))
  }
})
