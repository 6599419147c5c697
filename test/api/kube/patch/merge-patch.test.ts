import t from 'tap'
import type { Json, JsonObject } from '../../../../src/api/kube/json.ts'
import { mergePatch } from '../../../../src/api/kube/patch/merge-patch.ts'
import { failure, fixture } from './kit.ts'

void t.test('a captured patch gives the server’s answer', async (t) => {
  const patched = mergePatch(fixture('update-configmap'), { data: { b: null, c: '3' } })
  t.strictSame(patched['data'], fixture('patch-merge')['data'])
})

// The cases of RFC 7386, appendix A, whose document and patch are objects.
const cases: readonly (readonly [JsonObject, JsonObject, JsonObject])[] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
]

for (const [doc, patch, expected] of cases)
  void t.test(`${JSON.stringify(doc)} and ${JSON.stringify(patch)} are merged`, async (t) => {
    const before = structuredClone(doc)
    t.strictSame(mergePatch(doc, patch), expected)
    t.strictSame(doc, before, 'the document is as it was')
  })

void t.test('a patch that is no object or nests too deep is a bad request', async (t) => {
  let deep: Json = 1
  for (let level = 0; level < 5000; level++) deep = { deep }
  for (const patch of [[], 'x', null, deep])
    t.match(failure(() => mergePatch({ a: 1 }, patch)).status, { code: 400, reason: 'BadRequest' })
})

void t.test('a member named __proto__ is a member like any other', async (t) => {
  const patched = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}') as JsonObject)
  t.strictSame(Object.keys(patched), ['__proto__'])
  t.equal(patched['polluted'], undefined)
})
