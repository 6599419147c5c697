import t from 'tap'
import { jsonPatchBetween } from '../../../src/cluster/admission/json-patch.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { jsonPatch } from '../../../src/api/kube/patch/json-patch.ts'
import { roundOf, type Random } from '../../fuzz/random.ts'

void t.test('a patch has only changes', async (t) => {
  const before = { a: { 'b/c~d': 1, e: [1, 2], same: { deep: true } }, gone: null }
  const after = { a: { 'b/c~d': 2, e: [1, 3, 4], same: { deep: true } }, new: {} }
  t.strictSame(jsonPatchBetween(before, after), [
    { op: 'remove', path: '/gone' },
    { op: 'replace', path: '/a/b~1c~0d', value: 2 },
    { op: 'replace', path: '/a/e/1', value: 3 },
    { op: 'add', path: '/a/e/-', value: 4 },
    { op: 'add', path: '/new', value: {} },
  ])
  t.strictSame(jsonPatchBetween(before, structuredClone(before)), [])
  t.strictSame(jsonPatchBetween({ a: [1, 2] }, { a: [1] }), [
    { op: 'replace', path: '/a', value: [1] },
  ])
})

void t.test('a patch turns one object into the other', async (t) => {
  for (let round = 0; round < 2_000; round += 1) {
    const random = roundOf(7, round)
    const [before, after] = [randomObject(random, 3), randomObject(random, 3)]
    const changes = jsonPatchBetween(before, after) as unknown as Json
    const patched = jsonPatch(before, changes)
    if (JSON.stringify(sorted(patched)) !== JSON.stringify(sorted(after)))
      t.strictSame(patched, after, `round ${round}`)
  }
  t.pass('2000 rounds')
})

function randomObject(random: Random, depth: number): JsonObject {
  const names = ['a', 'b', '~/', '', '__proto__'].filter(() => random.once(2))
  return Object.fromEntries(names.map((name) => [name, randomJson(random, depth)]))
}

function randomJson(random: Random, depth: number): Json {
  if (depth > 0 && random.once(2)) return randomObject(random, depth - 1)
  if (depth > 0 && random.once(2))
    return Array.from({ length: random.below(4) }, () => randomJson(random, depth - 1))
  return random.of([null, true, 0, 1, 'x'])
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value as JsonObject).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]))
}
