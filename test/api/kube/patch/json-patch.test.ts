import t from 'tap'
import type { Json, JsonObject } from '../../../../src/api/kube/json.ts'
import { jsonPatch } from '../../../../src/api/kube/patch/json-patch.ts'
import { failure, fixture } from './kit.ts'

void t.test('a captured patch gives the server’s answer', async (t) => {
  const patch = [
    { op: 'add', path: '/data/d', value: '4' },
    { op: 'test', path: '/data/a', value: '1' },
  ]
  const patched = jsonPatch(fixture('patch-merge'), patch)
  t.strictSame(patched['data'], fixture('patch-json')['data'])
})

void t.test('a failed test is answered as the server answered it', async (t) => {
  const patch = [{ op: 'test', path: '/data/a', value: 'no' }]
  const { status, cause } = failure(() => jsonPatch(fixture('patch-json'), patch))
  t.strictSame(status, fixture('patch-json-failed-test'))
  t.match(cause, { message: 'testing value /data/a failed' })
})

const doc = { a: { b: [1, 2, 3], 'c/d~e': 'x' }, n: null }

const does: Readonly<Record<string, readonly [readonly JsonObject[], Json]>> = {
  'adds members': [[{ op: 'add', path: '/m', value: {} }], { ...doc, m: {} }],
  'adds before an element': [
    [{ op: 'add', path: '/a/b/1', value: 9 }],
    { ...doc, a: { ...doc.a, b: [1, 9, 2, 3] } },
  ],
  'adds at the end of a list': [
    [
      { op: 'add', path: '/a/b/-', value: 4 },
      { op: 'add', path: '/a/b/4', value: 5 },
    ],
    { ...doc, a: { ...doc.a, b: [1, 2, 3, 4, 5] } },
  ],
  'counts from the end of a list': [
    [
      { op: 'replace', path: '/a/b/-1', value: 9 },
      { op: 'remove', path: '/a/b/-3' },
    ],
    { ...doc, a: { ...doc.a, b: [2, 9] } },
  ],
  'reads escapes, tilde last': [
    [
      { op: 'remove', path: '/a/c~1d~0e' },
      { op: 'add', path: '/a/~01', value: 1 },
    ],
    { ...doc, a: { b: [1, 2, 3], '~1': 1 } },
  ],
  moves: [[{ op: 'move', from: '/a/b', path: '/b' }], { a: { 'c/d~e': 'x' }, n: null, b: doc.a.b }],
  'copies what later operations do not change twice': [
    [
      { op: 'copy', from: '/a/b', path: '/b' },
      { op: 'remove', path: '/b/0' },
    ],
    { ...doc, b: [2, 3] },
  ],
  'replaces a member that is not there': [
    [{ op: 'replace', path: '/m', value: 1 }],
    { ...doc, m: 1 },
  ],
  'replaces the document': [[{ op: 'replace', path: '', value: { z: 1 } }], { z: 1 }],
  'takes a missing member for null': [[{ op: 'test', path: '/m', value: null }], doc],
  'compares whole values, whatever the order of members': [
    [{ op: 'test', path: '/a', value: { 'c/d~e': 'x', b: [1, 2, 3] } }],
    doc,
  ],
}

for (const [sentence, [operations, expected]] of Object.entries(does))
  void t.test(`a JSON patch ${sentence}`, async (t) => {
    const before = structuredClone(doc)
    t.strictSame(jsonPatch(doc, operations), expected)
    t.strictSame(doc, before, 'the document is as it was')
  })

const fails: readonly (readonly [string, JsonObject])[] = [
  ['removes a member that is not there', { op: 'remove', path: '/m' }],
  ['removes past the end of a list', { op: 'remove', path: '/a/b/3' }],
  ['adds past the end of a list', { op: 'add', path: '/a/b/5', value: 1 }],
  ['adds below what is not there', { op: 'add', path: '/m/x', value: 1 }],
  ['adds below a string', { op: 'add', path: '/a/c~1d~0e/x', value: 1 }],
  ['adds below null', { op: 'add', path: '/n/x', value: 1 }],
  ['has no number where a list is', { op: 'replace', path: '/a/b/x', value: 1 }],
  ['tests another type', { op: 'test', path: '/a/b/0', value: '1' }],
  ['tests a longer list', { op: 'test', path: '/a/b', value: [1, 2, 3, 4] }],
  ['tests an object for more', { op: 'test', path: '/a', value: { ...doc.a, more: 1 } }],
  ['moves into itself', { op: 'move', from: '/a', path: '/a/b/0' }],
  ['removes the document', { op: 'remove', path: '' }],
  ['makes the document a list', { op: 'replace', path: '', value: [] }],
  ['has a path without a slash', { op: 'add', path: 'a', value: 1 }],
  ['has no path', { op: 'add', value: 1 }],
  ['is of no known kind', { op: 'mend', path: '/a' }],
]

for (const [sentence, operation] of fails)
  void t.test(`an operation that ${sentence} fails`, async (t) => {
    const patch = [{ op: 'add', path: '/first', value: 1 }, operation]
    t.match(failure(() => jsonPatch(doc, patch)).status, { code: 422, reason: 'Invalid' })
  })

void t.test('a patch that is no list is a bad request', async (t) => {
  for (const patch of [{}, [1], 'x', null, [[]]])
    t.match(failure(() => jsonPatch(doc, patch)).status, { code: 400 })
})

void t.test('ten thousand operations are the most a patch may have', async (t) => {
  const patch = (count: number): Json =>
    Array.from({ length: count }, (_, at) => ({ op: 'add', path: '/a/b/0', value: at }))
  const patched = jsonPatch(doc, patch(10_000)) as { a: { b: number[] } }
  t.equal(patched.a.b.length, 10_003)
  t.match(failure(() => jsonPatch(doc, patch(10_001))).status, {
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: 'The allowed maximum operations in a JSON patch is 10000, got 10001',
  })
})

void t.test('copies of copies beyond the size limit fail', async (t) => {
  const patch = Array.from({ length: 40 }, (_, at) => ({
    op: 'copy',
    from: '/a',
    path: `/a/${at}`,
  }))
  const { cause } = failure(() => jsonPatch({ a: { text: 'x'.repeat(1000) } }, patch))
  t.match(cause, { message: /copies add more/ })
})

void t.test('values and results that nest too deep are refused', async (t) => {
  let deep: Json = 1
  for (let level = 0; level < 5000; level++) deep = [deep]
  const { status } = failure(() => jsonPatch(doc, [{ op: 'add', path: '/m', value: deep }]))
  t.equal(status.code, 400)
  const growing = Array.from({ length: 300 }, (_, at) => ({
    op: 'add',
    path: `/a${'/x'.repeat(at + 1)}`,
    value: {},
  }))
  t.equal(failure(() => jsonPatch(doc, growing)).status.code, 400)
})

void t.test('a member named __proto__ is a member like any other', async (t) => {
  const patched = jsonPatch({}, [
    { op: 'add', path: '/__proto__', value: { polluted: true } },
    { op: 'add', path: '/constructor', value: 1 },
  ])
  t.strictSame(Object.keys(patched), ['__proto__', 'constructor'])
  t.equal(patched['polluted'], undefined)
  t.equal(
    failure(() => jsonPatch({}, [{ op: 'add', path: '/toString/x', value: 1 }])).status.code,
    422,
  )
})
