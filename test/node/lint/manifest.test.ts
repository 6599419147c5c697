import t from 'tap'
import { parseManifest } from '../../../src/node/lint/manifest.ts'

/** Kinds of the objects in a text. */
const kinds = (text: string): unknown[] =>
  parseManifest(text).objects.map(({ object }) => object['kind'])

void t.test(
  'documents, lists and JSON are read alike, and empty documents passed over',
  async (t) => {
    t.strictSame(kinds('kind: A\n---\n# nothing\n---\nkind: B\n'), ['A', 'B'])
    t.strictSame(kinds('kind: List\nitems: [{ kind: A }, { kind: List, items: [{ kind: B }] }]'), [
      'A',
      'B',
    ])
    t.strictSame(kinds('{\n\t"kind": "PodList",\n\t"items": [{}, { "kind": "Pod" }]\n}'), [
      'Pod',
      'Pod',
    ])
    t.strictSame(kinds(''), [])
  },
)

void t.test('a position is that of the member’s key, or of the nearest parent', async (t) => {
  const [object] = parseManifest('kind: Pod\nspec:\n  a:\n    - b: 1\n    - c: 2\n').objects
  t.strictSame(object?.at(['spec', 'a', 1, 'c']), { line: 5, column: 7 })
  t.strictSame(object?.at(['spec', 'a', 0, 'missing', 'deeper']), { line: 4, column: 7 })
  t.strictSame(object?.at(['missing']), { line: 1, column: 1 })
  const [, second] = parseManifest('kind: List\nitems:\n- x: 1\n- y: 2\n').objects
  t.strictSame(second?.at(['y']), { line: 4, column: 3 })
  const [shared] = parseManifest('a: &x\n  b: 1\nc: *x\n').objects
  t.strictSame(shared?.at(['c', 'b']), { line: 2, column: 3 })
})

void t.test('an unreadable document is reported with its line, others are read', async (t) => {
  const { objects, mistakes } = parseManifest('kind: A\n---\na: [\n---\nkind: B\n---\njust words\n')
  t.strictSame(
    objects.map(({ object }) => object['kind']),
    ['A', 'B'],
  )
  t.match(mistakes, [{ line: 4 }, { line: 7, message: 'this is no object' }])
})

void t.test('the expansion of aliases is bounded', async (t) => {
  const levels = Array.from({ length: 12 }, (_, at) => {
    const last = at === 0 ? 'x' : `*l${at - 1}`
    return `l${at}: &l${at} [${Array(10).fill(last).join(', ')}]\n`
  })
  t.match(parseManifest(levels.join('')), { objects: [], mistakes: [{ message: /alias/i }] })
})

void t.test('cyclic aliases are mistakes, and an anchor may be redefined', async (t) => {
  for (const text of [
    'a: &a\n  b: *a\n',
    'a: &a [1, { b: *a }]\n',
    '&a { <<: *a }\n',
    '&a { *a : 1 }\n',
  ])
    t.match(
      parseManifest(text),
      { objects: [], mistakes: [{ line: 1 + Number(text.includes('\n  ')), message: /alias/ }] },
      text,
    )
  t.match(parseManifest('a: &a { b: &b 1, c: *b }\nd: *a\ne: &e { f: &e 1, g: *e }\n'), {
    objects: [{ object: { d: { c: 1 }, e: { g: 1 } } }],
    mistakes: [],
  })
})

void t.test('merge keys work as in kubectl', async (t) => {
  const text = 'x: &x { hostNetwork: true, a: 1 }\nspec:\n  <<: *x\n  a: 2\n'
  const [read] = parseManifest(text).objects
  t.strictSame(read?.object['spec'], { hostNetwork: true, a: 2 })
})

void t.test('the kubelet’s environment files are read as its flags', async (t) => {
  const { objects } = parseManifest(
    '# by kubeadm\nHTTP_PROXY=x\nKUBELET_EXTRA_ARGS=--a=b  --c\nKUBELET_KUBEADM_ARGS="--d"\n',
  )
  t.match(objects, [
    {
      object: {
        variables: { KUBELET_EXTRA_ARGS: ['--a=b', '--c'], KUBELET_KUBEADM_ARGS: ['--d'] },
      },
    },
  ])
  t.strictSame(objects[0]?.at(['variables', 'KUBELET_KUBEADM_ARGS', 0]), { line: 4, column: 1 })
})

void t.test('scalars are those of YAML 1.1, as kubectl reads them', async (t) => {
  const spec = (text: string): unknown => {
    const { objects, mistakes } = parseManifest(`kind: A\nspec: ${text}\n`)
    t.strictSame(mistakes, [])
    return objects[0]?.object['spec']
  }
  t.strictSame(spec('[yes, on, y, No, OFF, oN, "yes"]'), [
    true,
    true,
    true,
    false,
    false,
    'oN',
    'yes',
  ])
  t.strictSame(spec('[010, 0o10, -012, 08, 10_267, 0b11, 0x1f]'), [8, 8, -10, 8, 10_267, 3, 31])
  t.strictSame(spec('[190:20:30, 2001-01-01]'), ['190:20:30', '2001-01-01'])
  t.strictSame(spec('{ a: 1, a: 2 }'), { a: 2 })
})

void t.test('objects of JSON may stand one behind the other', async (t) => {
  const { objects, mistakes } = parseManifest('{"kind":"A"} {"kind":"}{"}\n{"kind":"B", "c": 1}\n')
  t.strictSame(mistakes, [])
  t.strictSame(
    objects.map(({ object }) => object['kind']),
    ['A', '}{', 'B'],
  )
  t.strictSame(objects[2]?.at(['c']), { line: 2, column: 14 })
  t.match(parseManifest('{"kind":"A"} words'), { objects: [], mistakes: [{ line: 1 }] })
})

void t.test('a template that is not rendered is refused, as kubectl refuses it', async (t) => {
  const { objects, mistakes } = parseManifest('kind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n')
  t.strictSame(objects, [])
  t.match(mistakes, [{ line: 3, message: /is no key: is this a template/ }])
  t.match(parseManifest('{{- if .Values.on }}\nkind: Pod\n{{- end }}\n'), {
    objects: [],
    mistakes: [{ line: 1 }],
  })
})
